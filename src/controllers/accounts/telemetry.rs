//! The metrics of accounts.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// The metrics of the server.
    OUTAGES;
    Gauge => "keycloak_up" by {}
        "Whether Keycloak answers and accepts the credentials: 1, or 0 while it does not"
        "0: accounts and roles wait; everything else continues.";
}

declare_metrics! {
    /// The metrics of failures.
    FAILURES;
    Counter => "tenant_operator_internal_errors_total" by {
        controller: "`tenant` or `workspace`",
        reason: "the part that failed, such as `mydrive`"
    }
        "Number of failures of Tenants and Workspaces by controller and reason"
        "It rises: the conditions of Tenants and Workspaces say why.";
}
