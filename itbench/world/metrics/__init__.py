"""What Prometheus would scrape from the world, under the names that agents and dashboards know.

`state`: kube-state-metrics · `containers`: cAdvisor · `services`: the app's own (OpenTelemetry) · `journeys`: outside probes.
Scrapes happen every 15 s (journeys every 5 s). Counts of requests are drawn around the flow's exact amounts (Poisson, from
the noise seed); the flow itself never sees that noise.
"""
