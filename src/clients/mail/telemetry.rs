//! The metrics of mails.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All metrics.
    METRICS;
    Counter => "crownlabs_mails_total" by {
        kind: "the mail, such as `inactivity_warning`; `undeliverable`: a mail to a manager about a rejected mail",
        result: "`success`, or the [reason](reasons.md)"
    }
        "Number of mails to Tenants, and of failed attempts, by kind and result"
        "Results other than `success`.";
    Histogram(&REQUEST_BUCKETS) => "crownlabs_mail_duration_seconds" by {}
        "Time in seconds until a mail is accepted or has failed"
        "Near `integrations.mail.timeout`: the mail server is slow.";
}
