"""Normal, Student t, beta and binomial distributions in plain Python, so that no import costs anything.

Called by every module of this package that needs a quantile. Accuracy is about 1e-12, tested against tables and known identities.
"""

from functools import lru_cache
from math import exp, inf, lgamma, log, log1p, sqrt
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_STEPS = 10_000


def normal_quantile(p: float) -> float:
    """The z with Phi(z) = p, for 0 < p < 1."""
    _within(p)
    return _NORMAL.inv_cdf(p)


def normal_cdf(z: float) -> float:
    """Phi(z)."""
    return _NORMAL.cdf(z)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), a and b > 0 (continued fraction of Lentz)."""
    if a <= 0 or b <= 0:
        raise ValueError(f"a beta distribution needs a > 0 and b > 0, got {a} and {b}")
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by the modified method of Lentz."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 + term * d
            c = 1.0 + term / c
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


@lru_cache(maxsize=4096)
def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = p, by bisection."""
    if p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if beta_cdf(middle, a, b) < p else (low, middle)
    return (low + high) / 2


def t_cdf(t: float, df: float) -> float:
    """P(T <= t) of Student's t with `df` > 0 degrees of freedom."""
    tail = beta_cdf(df / (df + t * t), df / 2, 0.5) / 2
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The t with P(T <= t) = p, `df` > 0 degrees of freedom; the normal quantile for infinitely many."""
    _within(p)
    if df <= 0:
        raise ValueError(f"Student's t needs df > 0, got {df}")
    if df == inf:
        return normal_quantile(p)
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -t_quantile(1 - p, df)
    x = beta_quantile(2 * (1 - p), df / 2, 0.5)
    return sqrt(df * (1 - x) / x) if x > 0 else inf


def binomial_cdf(c: int, n: int, p: float) -> float:
    """P(X <= c) of a binomial with n draws of chance p."""
    if c < 0:
        return 0.0
    return 1.0 if c >= n else beta_cdf(1 - p, n - c, c + 1)


@lru_cache(maxsize=256)
def chi_squared_tail(x: float, df: int = 1) -> float:
    """P(X > x) of chi squared, by the regularised upper incomplete gamma function.

    Args:
        x: >= 0.
        df: degrees of freedom, at least 1.
    """
    if x <= 0:
        return 1.0
    if df == 1:
        return 2 * (1 - normal_cdf(sqrt(x)))
    if df == 2:
        return exp(-x / 2)
    return chi_squared_tail(x, df - 2) + exp((df / 2 - 1) * log(x / 2) - x / 2 - lgamma(df / 2))


def _within(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs a probability strictly between 0 and 1, got {p}")
