"""APIs that a new cluster does not have are concealed from clients, not from the cluster's own programs."""

from itbench.kube.resources import ADDONS, builtin_table


def test_concealed_groups_have_no_path_and_no_discovery_but_are_found_by_name() -> None:
    """`itbench kube` without --api shows none of the add-ons; the world finds them all the same."""
    table = builtin_table()
    assert set(ADDONS) <= set(dict(table.groups()))
    table.conceal(ADDONS)
    assert not set(ADDONS) & set(dict(table.groups()))
    assert table.lookup("chaos-mesh.org", "v1alpha1", "podchaos") is None
    assert table.of("metrics.k8s.io", "v1beta1") == []
    assert table.named("prometheusrules.monitoring.coreos.com").kind == "PrometheusRule"
    table.conceal(())
    assert table.lookup("chaos-mesh.org", "v1alpha1", "podchaos") is not None
