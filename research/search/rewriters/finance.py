"""Financial ratios, spelled out.

A filing seldom states a quick ratio or a cash conversion cycle; it states what they are computed from, in statements
that hold no word of the question. So a question about a ratio is searched with the line items it is made of.
"""

from __future__ import annotations

import re

_INCOME = "consolidated statements of income operations earnings"
_BALANCE = "consolidated balance sheets"
_CASH = "consolidated statements of cash flows"

_SALES = "net sales revenue"
_COST = "cost of sales cost of goods sold"
_EQUITY = "total shareholders equity"

# What a ratio is called, by how its words begin (in capitals: only as a word in capitals, a roe is a deer) → its
# line items, in the words that statements use, and the statements they stand in.
_PARTS = (
    (("gross margin", "gross profit"), f"{_SALES} {_COST} gross profit {_INCOME}"),
    (
        ("operating margin", "operating income margin", "operating profit", "ebit"),
        f"operating income {_SALES} {_INCOME}",
    ),
    (("profit margin", "income margin", "net margin"), f"net income {_SALES} {_INCOME}"),
    (("ebitda",), f"operating income depreciation and amortization {_INCOME} {_CASH}"),
    (("d&a margin", "depreciation margin"), f"depreciation and amortization {_SALES} {_INCOME} {_CASH}"),
    (
        ("quick ratio", "current ratio", "cash ratio", "acid test", "liquidity ratio", "working capital"),
        f"cash and cash equivalents receivables inventories total current assets total current liabilities {_BALANCE}",
    ),
    (("inventory turn", "days inventory", "days of inventory"), f"inventories {_COST} {_BALANCE} {_INCOME}"),
    (
        ("receivable turnover", "receivables turnover", "days sales outstanding", "DSO"),
        f"accounts receivable {_SALES} {_BALANCE} {_INCOME}",
    ),
    (
        ("payable turnover", "payables turnover", "days payable", "DPO"),
        f"accounts payable {_COST} {_BALANCE} {_INCOME}",
    ),
    (
        ("cash conversion cycle",),
        f"inventories accounts receivable accounts payable {_COST} {_SALES} {_BALANCE} {_INCOME}",
    ),
    (
        ("return on asset", "return on total asset", "return on average asset", "ROA"),
        f"net income total assets {_BALANCE} {_INCOME}",
    ),
    (("asset turnover",), f"{_SALES} total assets {_BALANCE} {_INCOME}"),
    (
        ("return on equity", "return on average equity", "return on shareholders", "return on stockholders", "ROE"),
        f"net income {_EQUITY} {_BALANCE} {_INCOME}",
    ),
    (
        ("return on capital", "return on invested", "invested capital", "capital employed", "ROIC", "ROCE"),
        f"operating income total assets total current liabilities cash and cash equivalents {_BALANCE} {_INCOME}",
    ),
    (
        ("debt to", "total debt", "net debt", "average long term debt", "to total liabilities", "leverage ratio"),
        f"long-term debt total liabilities {_EQUITY} interest expense {_BALANCE}",
    ),
    (
        ("capitalization ratio", "capitalisation ratio", "gearing ratio"),
        f"long-term debt {_EQUITY} {_BALANCE}",
    ),
    (("interest coverage", "times interest earned"), f"operating income interest expense {_INCOME}"),
    (
        ("effective tax rat", "effective income tax rat"),
        f"provision for income taxes income before income taxes {_INCOME}",
    ),
    (
        ("free cash flow", "free cashflow", "cash flow conversion", "cashflow conversion", "cash flow ratio", "FCF"),
        f"net cash provided by operating activities purchases of property and equipment net income {_CASH}",
    ),
    (
        ("capital expenditure", "capex", "cap ex"),
        f"purchases of property plant and equipment capital expenditures {_CASH}",
    ),
    (
        ("fixed asset", "capital intensi", "pp&e", "ppne", "ppe"),
        f"property plant and equipment net total assets {_SALES} {_BALANCE}",
    ),
    (("payout ratio", "retention ratio"), f"dividends paid net income {_CASH}"),
    (
        ("change in revenue", "growth in revenue", "increase in revenue", "decline in revenue", "revenue growth"),
        f"total {_SALES} {_INCOME}",
    ),
    (("cogs",), f"{_COST} {_INCOME}"),
)
_BETWEEN = re.compile(r"[^\w&]+")


def spelled_out(question: str) -> str:
    """The question with the line items of every ratio it names; unchanged if it names none."""
    # Plain look-ups: two dozen patterns would have to be compiled at every cold start.
    text = f" {_BETWEEN.sub(' ', question)} "
    lower = text.lower()
    words = [
        word
        for names, parts in _PARTS
        if any(f" {name} " in text if name.isupper() else f" {name}" in lower for name in names)
        for word in parts.split()
    ]
    return f"{question} {' '.join(dict.fromkeys(words))}" if words else question
