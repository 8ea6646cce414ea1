//! The metrics of accounts.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// Those of the server.
    OUTAGES;
    Gauge => "keycloak_up" by {}
        "Whether Keycloak answers: 1, or 0 while it does not"
        "0: accounts and roles wait; everything else goes on.";
}

declare_metrics! {
    /// Those of what failed.
    FAILURES;
    Counter => "tenant_operator_internal_errors" by {
        controller: "`tenant` or `workspace`",
        reason: "the part that failed, such as `mydrive`"
    }
        "Number of failures in what Tenants and Workspaces need by controller and reason"
        "It rises: the conditions of Tenants and Workspaces say why.";
}
