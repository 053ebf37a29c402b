"""Examples at the end of each command's help."""

from __future__ import annotations

_LINES = {
    "demo": ["mixmem demo --out demo"],
    "fit": [
        "mixmem fit survey.sav -k 4 --out result",
        'mixmem fit answers.csv -k 4 --kind "q*=ordinal" --weight w --by region --out result',
        "mixmem fit --config result/fit.json --out again    (the same fit once more)",
        "mixmem fit samples.vcf.gz -k 3 --out ancestry --q samples.3.Q",
    ],
    "choose-k": ["mixmem choose-k survey.sav --from 2 --to 8 --out choice"],
    "memberships": ["mixmem memberships result/model.mixmem new.csv --id person --out rows.csv"],
    "impute": ["mixmem impute result/model.mixmem answers.csv --out filled.csv"],
    "compare": ["mixmem compare result answers.csv --by gender --weight w --cluster school"],
    "crowd": ["mixmem crowd labels.csv --out crowd --budget 30"],
    "topics": ["mixmem topics notes.csv -k 10 --column text --by desk --out topics"],
    "simulate": ["mixmem simulate --rows 2000 --variables 30 -k 4 --seed 1 --out survey"],
    "info": ["mixmem info survey.sav", "mixmem info export.csv --missing -99,999 --kind zip=ignore"],
    "report": ["mixmem report result --by region"],
}
EXAMPLES = {
    name: "\b\n" + "\n".join([f"Example{'s' * (len(lines) > 1)}:", *(f"  {line}" for line in lines)])
    for name, lines in _LINES.items()
}
"""By command; typer leaves lines after its mark as they are."""
