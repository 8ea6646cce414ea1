//! The machine-readable reasons of refusals by the webhooks, as in `details.causes` of the `Status` that the API server
//! returns. The dashboard has a sentence for each of them in every language.

use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::quota::Refusal;
use super::usage::Share;

/// The maximum length of a value in characters: a cookie of the dashboard holds it.
const LONGEST: usize = 120;

/// Declares the reasons, and the list of all of them.
macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Why a webhook refuses a change. The comment names the value of its [`Cause`], if it has one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum DenialReason {
            $($(#[$doc])+ $name,)+
        }

        impl DenialReason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

reasons! {
    /// The Template does not exist.
    NoTemplate,
    /// The Template writes to the shared volume (value) of another namespace.
    WritesForeignVolume,
    /// The Template belongs to another Tenant.
    OfAnotherTenant,
    /// The Tenant does not exist.
    NoTenant,
    /// The Tenant is not enrolled in the Workspace (value).
    NotEnrolled,
    /// The Workspace (value) does not exist.
    NoWorkspace,
    /// The Tenant has no personal workspace.
    NoPersonalWorkspace,
    /// Instances of the personal workspace must be in the namespace (value).
    Elsewhere,
    /// The namespace has the maximum number (value) of Instances.
    Full,
    /// A limit of the quota would be exceeded, such as `CPU (9 > 8)` (value). There is a cause for each limit.
    QuotaExceeded,
    /// The name of a new Instance is too long.
    NameTooLong,
    /// A text has more characters than its limit (value).
    TextTooLong,
    /// The Tenant has too many SSH keys, or too long ones.
    TooManyKeys,
    /// Only managers change this enrolment in the Workspace (value).
    EnrolmentClosed,
    /// The Workspace (value) grants another role.
    EnrolmentChanged,
    /// The user does not manage the Workspaces (value) of these enrolments.
    NotManager,
    /// The Template of the Instance belongs to the Workspace (value), which the user does not manage, or to none.
    OfAnotherCourse,
    /// Only the owner of the Instance shares it.
    SharedByOther,
    /// The owner of the Instance needs no share in it.
    SharedWithOwner,
    /// The person (value) with whom the Instance is shared is not enrolled in its Workspace.
    SharedWithOutsider,
    /// The Instance is for an exam, or belongs to no Workspace with whose people it could be shared.
    SharedWithoutCourse,
    /// The end of the share is over, or too far away.
    SharedTooLong,
    /// Two ports of the Instance have this name (value).
    PortNameTaken,
    /// Two ports of the Instance lead to this port (value) inside it.
    PortTargetTaken,
    /// This public port (value) is in use.
    PublicPortTaken,
}

/// A reason of a refusal, with the value that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The reason.
    pub reason: DenialReason,
    /// The value that the reason is about; empty if it is about none.
    #[serde(rename = "message", default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

impl Cause {
    /// Creates a cause.
    pub fn new(reason: DenialReason, value: &str) -> Self {
        Self { reason, value: value.chars().take(LONGEST).collect() }
    }

    /// Reads a cause of a `Status`; `None` for the causes of the API server and of other webhooks.
    pub fn parse(reason: &str, value: &str) -> Option<Self> {
        let reason: StrDeserializer<'_, Error> = reason.into_deserializer();
        Some(Self::new(DenialReason::deserialize(reason).ok()?, value))
    }

    /// Returns the causes of a refusal by the rule of the quota.
    pub fn of(refusal: &Refusal) -> Vec<Self> {
        use DenialReason as Reason;
        let (reason, value) = match refusal {
            Refusal::NoTemplate(_) => (Reason::NoTemplate, String::new()),
            Refusal::WritesForeignVolume { volume, .. } => (Reason::WritesForeignVolume, volume.to_string()),
            Refusal::OfAnotherTenant { .. } => (Reason::OfAnotherTenant, String::new()),
            Refusal::NoTenant(_) => (Reason::NoTenant, String::new()),
            Refusal::NotEnrolled { workspace, .. } => (Reason::NotEnrolled, workspace.clone()),
            Refusal::NoWorkspace(workspace) => (Reason::NoWorkspace, workspace.clone()),
            Refusal::NoPersonalWorkspace(_) => (Reason::NoPersonalWorkspace, String::new()),
            Refusal::Elsewhere { namespace, .. } => (Reason::Elsewhere, namespace.clone()),
            Refusal::Full(places) => (Reason::Full, places.limit.to_string()),
            Refusal::Exceeded(shares) => {
                let exceeded = |share: &Share| Self::new(Reason::QuotaExceeded, &share.to_string());
                return shares.iter().map(exceeded).collect();
            }
        };
        vec![Self::new(reason, &value)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::usage::Measure;
    use crate::api::{GenericRef, Quantity};

    #[test]
    fn each_reason_is_read_as_it_is_written() {
        for reason in DenialReason::ALL {
            let cause = Cause::new(*reason, "tea");
            let written = serde_json::to_value(&cause).expect("JSON");
            assert_eq!(written, json!({"reason": format!("{reason:?}"), "message": "tea"}));
            let text = written["reason"].as_str().expect("a text");
            assert_eq!(Cause::parse(text, "tea"), Some(cause));
        }
        for other in ["", "FieldValueInvalid", "quotaExceeded"] {
            assert_eq!(Cause::parse(other, "x"), None, "{other:?}");
        }
        assert_eq!(Cause::new(DenialReason::NoTenant, &"é".repeat(400)).value.chars().count(), LONGEST);
    }

    #[test]
    fn a_refusal_of_the_quota_has_a_cause_for_each_limit() {
        let share = |measure, used, limit: i64| Share {
            measure,
            used: Quantity::from_int(used),
            limit: Some(Quantity::from_int(limit)),
        };
        let exceeded = Refusal::Exceeded(vec![share(Measure::Instances, 4, 3), share(Measure::Cpu, 9, 8)]);
        let reason = DenialReason::QuotaExceeded;
        assert_eq!(
            Cause::of(&exceeded),
            [Cause::new(reason, "Instances (4 > 3)"), Cause::new(reason, "CPU (9 > 8)")]
        );
        let gone = Refusal::NoTemplate(GenericRef::new("workspace-tea", "vm"));
        assert_eq!(Cause::of(&gone), [Cause::new(DenialReason::NoTemplate, "")]);
        let workspace = "net".to_owned();
        let outsider = Refusal::NotEnrolled { tenant: "ada".to_owned(), workspace };
        assert_eq!(Cause::of(&outsider), [Cause::new(DenialReason::NotEnrolled, "net")]);
    }
}
