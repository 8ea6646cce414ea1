//! The metric of the objects of former selectors.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// Objects of former selectors.
    METRICS;
    Gauge => "crownlabs_objects_of_former_selectors" by {kind: "`Tenants`, `Workspaces` or `SharedVolumes`"}
        "Number of objects with the finalizer of this installation that its selector no longer matches"
        "Above 0: the selector was changed, perhaps by mistake; /readyz names the former one.";
}
