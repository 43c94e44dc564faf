"""Other people's auditing tools and accountants, each measured in its own environment, and this package's methods.

To add a tool, put its version into a list of packages here, and a function into ``worker.py`` that calls it as its
documentation does. A ``ToolAuditor`` or an ``Accountant`` quotes what its documentation calls the number. A script in
``examples/auditors`` shows a fault, and ``FAULTS`` of ``page.py`` lists it.
"""
