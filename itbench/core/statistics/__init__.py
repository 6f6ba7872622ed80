"""Numbers that can be trusted: estimates with their uncertainty, comparisons, power, times, bounds.

Pure functions on plain data, used by the metric cards, `itbench run`, `itbench compare`, `itbench plan` and the report. One
module per question, each documented with its formula and its source in `docs/statistics.md`:

    estimate       a value that cannot be printed without its interval, method and the question it answers
    quantiles      normal, Student t, beta and binomial, in plain Python
    clusters       the one partition into families, and every standard error
    headline       mean of scenario means with a family-clustered t interval
    proportions    Wilson, Jeffreys, Clopper-Pearson, one-sided bounds
    repeats        unbiased pass@k and pass^k
    paired         two agents on the same scenarios: differences, sign-flip and McNemar tests, equivalence, wins and losses
    multiplicity   Holm and Benjamini-Hochberg
    power          how many scenarios and trials for which difference
    survival       times with a limit: Kaplan-Meier, restricted mean, incidence, log-rank
    bootstrap      cluster bootstrap for ratios and medians
    invalid        what invalid trials could do to the result
    detection      sensitivity, specificity and their kin
    costs          money that may be unknown, cost per success, Pareto fronts
    adjust         domain macro-averages and control variates
    judges         error rates of judges, and their agreement
    sequential     confidence sequences, for those who look early

Nothing here reads a clock or a global random state: what draws takes a seed. numpy is imported only where many draws are made.
"""
