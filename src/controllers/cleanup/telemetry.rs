//! The metrics of the loops that stop and delete Instances.

use crate::runtime::metric::declare_metrics;

declare_metrics! {
    /// All of them.
    METRICS;
    Gauge => "next_deadline_seconds" by {controller: "`inactivity` or `expiration`"}
        "Time of the next promised stop or deletion of an Instance per controller, in seconds since 1970; 0 for none"
        "In the past for an hour: the loop does not act. The log, and the conditions of Instances.";
    Gauge => "automation_instances" by {
        controller: "`inactivity`",
        witness: "`ingress`, `ssh`, `webSsh`, `open`: the source of metrics; `kept`, `start`, `annotation`, `other`"
    }
        "Number of running Instances whose use is watched per controller, by the source of their last known use"
        "`start` for nearly all: no source counts uses. See [queries](../prometheus-queries.md).";
    Gauge => "automation_mails_waiting" by {controller: "`inactivity` or `expiration`"}
        "Number of mails to tenants that no server has accepted yet per controller"
        "Above 0 for an hour: the mail server rejects mails. The conditions `Inactive`, `Abandoned` and `Expiring` say why.";
    Gauge => "automation_mails_undeliverable" by {controller: "`inactivity` or `expiration`"}
        "Number of Instances per controller whose mails the server permanently rejects, even without any text of the user"
        "Above 0: correct the address of the Tenant. The condition with the reason `MailUndeliverable` has the server's words.";
}
