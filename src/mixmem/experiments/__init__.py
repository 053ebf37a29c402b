"""The paper's experiments, rerun: ``mixmem reproduce figure``, ``runtime`` and ``negatives``.

``cells`` holds the design and the published values, ``methods`` the compared methods, ``ledger`` and ``pool`` make a
long run resumable and parallel, and ``figure``, ``runtime`` and ``negatives`` are the three studies.
"""
