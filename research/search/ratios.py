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
_PLANT = "property plant and equipment net"
_EQUITY = "total shareholders equity"

# Acronyms that are words elsewhere count in capitals only.
# Pattern → the line items, in the words that statements use, and the statements they stand in.
_PARTS = (
    (r"gross (?:profit )?margins?|gross profit", f"{_SALES} {_COST} gross profit {_INCOME}"),
    (r"operating (?:profit |income )?margins?|operating profit|ebit", f"operating income {_SALES} {_INCOME}"),
    (r"(?:net |pre-?tax )?(?:profit|income) margins?", f"net income {_SALES} {_INCOME}"),
    (r"ebitda(?:r)?", f"operating income depreciation and amortization {_INCOME} {_CASH}"),
    (r"(?:d&a|depreciation) margins?", f"depreciation and amortization {_SALES} {_INCOME} {_CASH}"),
    (
        r"(?:quick|current|cash|acid[- ]test|liquidity) ratios?|(?:net )?working capital",
        f"cash and cash equivalents receivables inventories total current assets total current liabilities {_BALANCE}",
    ),
    (r"inventory turn(?:s|over)|days (?:of )?inventory", f"inventories {_COST} {_BALANCE} {_INCOME}"),
    (r"receivables? turnover|days sales outstanding|(?-i:DSO)", f"accounts receivable {_SALES} {_BALANCE} {_INCOME}"),
    (r"payables? turnover|days payables? outstanding|(?-i:DPO)", f"accounts payable {_COST} {_BALANCE} {_INCOME}"),
    (
        r"cash conversion cycle",
        f"inventories accounts receivable accounts payable {_COST} {_SALES} {_BALANCE} {_INCOME}",
    ),
    (r"return on (?:total |average )?assets?|(?-i:ROA)", f"net income total assets {_BALANCE} {_INCOME}"),
    (r"(?:total )?assets? turnover", f"{_SALES} total assets {_BALANCE} {_INCOME}"),
    (r"return on (?:\w+ )?equity|(?-i:ROE)", f"net income {_EQUITY} {_BALANCE} {_INCOME}"),
    (
        r"return on (?:invested )?capital|(?-i:ROIC|ROCE)|invested capital|capital employed",
        f"operating income total assets total current liabilities cash and cash equivalents {_BALANCE} {_INCOME}",
    ),
    (
        r"debt[- ]to[- ]\w+|to total (?:debt|liabilities)|average (?:total|long-term) debt|(?:leverage|gearing) ratio"
        r"|capitali[sz]ation ratio|total debt|net debt",
        f"long-term debt total liabilities {_EQUITY} interest expense {_BALANCE}",
    ),
    (r"interest coverage|times interest earned", f"operating income interest expense {_INCOME}"),
    (r"effective (?:income )?tax rat(?:e|io)s?", f"provision for income taxes income before income taxes {_INCOME}"),
    (
        r"free cash ?flows?|(?-i:FCF)|cash ?flow conversion|operating cash ?flow ratio",
        f"net cash provided by operating activities purchases of property and equipment net income {_CASH}",
    ),
    (
        r"capital expenditures?|cap ?ex",
        f"purchases of property plant and equipment capital expenditures {_CASH}",
    ),
    (r"fixed assets?(?: turnover)?|capital[- ]intensi\w+|pp(?:n|&|and)e", f"{_PLANT} total assets {_SALES} {_BALANCE}"),
    (r"payout ratio|retention ratio", f"dividends paid net income {_CASH}"),
    (
        r"(?:change|growth|increase|decrease|decline) in (?:\w+ )?revenues?|revenue (?:growth|change)",
        f"total {_SALES} {_INCOME}",
    ),
    (r"cogs", f"{_COST} {_INCOME}"),
)
_TABLE = tuple((re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), parts) for pattern, parts in _PARTS)


def spelled_out(question: str) -> str:
    """The question with the line items of every ratio it names; unchanged if it names none."""
    words = [word for pattern, parts in _TABLE if pattern.search(question) for word in parts.split()]
    return f"{question} {' '.join(dict.fromkeys(words))}" if words else question
