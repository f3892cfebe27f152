"""How numbers are written for people: costs, shares, names that may hold control characters."""

from __future__ import annotations


def amount(value: float) -> str:
    """A cost with four digits, without an exponent where it can be helped.

    >>> amount(2.5), amount(0.000123456), amount(12345678.0), amount(0)
    ('2.5', '0.0001235', '12,345,678', '0')
    """
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 1e-5:
        return f"{float(f'{value:.4g}'):.9f}".rstrip("0").rstrip(".")
    return f"{value:.3g}"


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun in the right form.

    >>> counted(1, "item"), counted(2000, "item"), counted(0, "query", "queries")
    ('1 item', '2,000 items', '0 queries')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def share(value: float) -> str:
    """A share in percent, with a digit more where it is small.

    >>> share(0.1234), share(0.00123), share(0), share(1), share(1e-9), share(0.99999)
    ('12.3 %', '0.12 %', '0 %', '100 %', '< 0.01 %', '> 99.9 %')
    """
    if value in (0, 1):
        return "100 %" if value else "0 %"
    if 0 < value < 1e-4:
        return "< 0.01 %"
    if 0.9995 < value < 1:
        return "> 99.9 %"
    return f"{value * 100:.1f} %" if value >= 0.01 else f"{value * 100:.2g} %"


def round_share(value: float) -> str:
    """A share that is a round number, such as a tick or a level.

    >>> round_share(0.3), round_share(0.99), round_share(0.025)
    ('30 %', '99 %', '2.5 %')
    """
    return f"{value * 100:.6g} %"


def printable(text: str) -> str:
    r"""Text in which control characters are shown, not run: a terminal obeys escape codes.

    >>> printable("a\x1b[31mred\n"), printable("plain")
    ('a\\x1b[31mred\\n', 'plain')
    """
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
