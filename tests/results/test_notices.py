"""Notices: one record per word against a result."""

from mixmem.results.notices import Notice, diagnostic_failed


def test_a_notice_goes_to_json_and_back():
    notice = Notice("no-structure", "serious", "nothing was found", "use one component")
    assert notice.to_plain() == {
        "code": "no-structure", "severity": "serious", "message": "nothing was found", "remedy": "use one component",
    }  # fmt: skip
    assert Notice.from_plain(notice.to_plain()) == notice
    assert notice.text == "nothing was found; use one component"


def test_a_failure_is_one_line_however_long_its_reason():
    notice = diagnostic_failed("the page", ValueError("first\nsecond " + 500 * "x"))
    assert "\n" not in notice.text
    assert len(notice.text) < 350
    assert diagnostic_failed("the page", MemoryError()).message.startswith("the page could not be made (MemoryError)")
