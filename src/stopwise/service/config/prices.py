"""What a model costs, where the file does not say: from a list that comes with a package."""

from __future__ import annotations

from typing import Any

from stopwise.checks import StopwiseError
from stopwise.service.config.forms import Price


def known_price(where: str, model: str, base_url: str) -> Price:
    """The list price of a model, per million tokens in US dollars; unknown models are refused.

    >>> known_price("stages[0]", "gpt-4o-mini", "https://api.openai.com/v1").input
    0.15
    """
    import genai_prices

    try:
        usage = genai_prices.Usage(input_tokens=1000, output_tokens=1000)
        try:
            found: Any = genai_prices.calc_price(usage, model, provider_api_url=base_url)
        except LookupError:
            found = genai_prices.calc_price(usage, model)
    except LookupError:
        raise StopwiseError(
            f"{where}.price: the price of {model!r} is not known; give it as"
            " price = { input = ..., output = ... } per million tokens, or cost = ... per call"
        ) from None
    # Prices in tiers are read at the lowest one: a thousand tokens each way.
    return Price(float(found.input_price) * 1000.0, float(found.output_price) * 1000.0)
