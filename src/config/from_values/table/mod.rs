//! Which value of the Go operators' chart is which key of the configuration, or which value of the daemon's chart.

mod instances;
mod others;
mod tenants;

/// How a value is written in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Same,
    /// A duration as Go writes it.
    Duration,
    /// A number of minutes.
    Minutes,
    /// A URL, without a slash at its end.
    Url,
    /// A list, or texts with commas between them.
    List,
    /// Labels or annotations: pairs `key=value` with this between them, or a list of pairs.
    Pairs(char),
    /// A number of gigabytes.
    Gigabytes,
    /// A port, at which a server listens on all addresses.
    Port,
    /// A query of Prometheus: Go's `"%s"` is `%q`.
    Query,
}

/// What becomes of a value.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// It is this key of the configuration, in this form.
    Key(&'static str, Form),
    /// It is this value of the daemon's chart.
    Chart(&'static str),
    /// It is used together with other values, for these keys of the configuration and values of the chart.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tables of the page name them"))]
    With(&'static str),
    /// It is not carried over, for this reason.
    Left(&'static str),
}

/// The path of a value in its part, and what becomes of it and of all below it.
pub type Row = (&'static str, Fate);

/// A part of the chart.
#[derive(Debug)]
pub struct Part {
    /// Its names in newer and older charts.
    pub names: &'static [&'static str],
    /// What becomes of its values.
    pub rows: &'static [Row],
    /// Whether the newest chart has it.
    pub is_current: bool,
}

/// The parts of the chart.
pub const PARTS: [Part; 7] = [
    Part { names: &["operator", "tenant-operator"], rows: tenants::ROWS, is_current: true },
    Part { names: &["instance-operator"], rows: instances::ROWS, is_current: true },
    Part { names: &["bastion", "bastion-operator"], rows: others::BASTION, is_current: true },
    Part { names: &["exam-agent"], rows: others::EXAMS, is_current: true },
    Part { names: &["crownmail"], rows: others::MAIL, is_current: true },
    Part { names: &["image-list"], rows: others::IMAGE_LIST, is_current: false },
    Part { names: &["instmetrics"], rows: others::INSTANCE_METRICS, is_current: false },
];

/// Values outside of the parts.
pub const WHOLE: &[Row] = others::WHOLE;

const IMAGES: Fate =
    Fate::Left("the images of the daemon are others: `image` and `imagePullSecrets` of its chart");
const REPLICAS: Fate =
    Fate::Left("two replicas run, of which one leads: `replicas` and `bastion.replicas` of the chart");
const NAMES: Fate = Fate::Left("objects of the daemon's release are named after it");
const ANNOTATIONS: Fate =
    Fate::Left("annotations of the operators' pods; `podAnnotations` of the chart are those of the daemon's");
const SECURITY: Fate = Fate::Left("the daemon's pods have no rights that could be taken from them");
const RESOURCES: Fate = Fate::Left("the daemon needs less: `resources` of the chart");
const CONCURRENCY: Fate = Fate::Left("each loop has `concurrency`, with a higher default");
const GLOBAL: Fate = Fate::Left("`global` of the whole chart is what counts");
const CERTIFICATE: Fate = Fate::Left(
    "the daemon is the authority of its webhooks' certificate; `webhook.certManager` of the chart uses cert-manager",
);
const MIRRORS: Fate =
    Fate::Left("personal volumes are mounted over NFS, and not mirrored into the namespaces of Tenants");

/// Values that every part has: how its pods run.
pub const PODS: &[Row] = &[
    ("replicaCount", REPLICAS),
    ("replicaCountAutomation", REPLICAS),
    ("image", IMAGES),
    ("imagePullSecrets", IMAGES),
    ("nameOverride", NAMES),
    ("fullnameOverride", NAMES),
    ("rbacResourcesName", NAMES),
    ("deploymentAnnotations", ANNOTATIONS),
    ("daemonsetAnnotations", ANNOTATIONS),
    ("podAnnotations", ANNOTATIONS),
    ("securityContext", SECURITY),
    ("securityContexts", SECURITY),
    ("podSecurityContext", SECURITY),
    ("containerSecurityContext", SECURITY),
    ("automountServiceAccountToken", SECURITY),
    ("resources", RESOURCES),
    ("global", GLOBAL),
];
