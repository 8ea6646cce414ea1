//! The metrics of mails.

use crate::runtime::metric::{REQUEST_BUCKETS, declare_metrics};

declare_metrics! {
    /// All of them.
    METRICS;
    Counter => "crownlabs_mails_total" by {
        kind: "the mail, such as `inactivity_warning`; `undeliverable`: to a manager, about one that is refused",
        result: "`success`, or the [reason](reasons.md)"
    }
        "Number of mails to Tenants, and of attempts that failed, by kind and result"
        "Other results than `success`.";
    Histogram(&REQUEST_BUCKETS) => "crownlabs_mail_duration_seconds" by {}
        "Time in seconds until a mail is accepted or has failed"
        "Near `integrations.mail.timeout`: the mail server is slow.";
}
