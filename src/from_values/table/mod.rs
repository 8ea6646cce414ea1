//! Maps each value of the Go operators' chart to a key of the configuration or a value of the daemon's chart.

mod instances;
mod others;
mod tenants;

/// The form that a value has in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Unchanged.
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
    /// A port. The server listens on all addresses.
    Port,
    /// A Prometheus query: Go's `"%s"` becomes `%q`.
    Query,
}

/// The result of converting a value.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// The value becomes this key of the configuration, in this form.
    Key(&'static str, Form),
    /// The value becomes this value of the daemon's chart.
    Chart(&'static str),
    /// The value is combined with others into these keys of the configuration and values of the chart.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tables of the page name them"))]
    With(&'static str),
    /// The value is not carried over, for this reason.
    Left(&'static str),
}

/// The path of a value in its part, and the result for this value and all values below it.
pub type Row = (&'static str, Fate);

/// A part of the chart.
#[derive(Debug)]
pub struct Part {
    /// Its names in newer and older charts.
    pub names: &'static [&'static str],
    /// The conversions of its values, each list with the beginning of its paths.
    pub rows: &'static [(&'static str, &'static [Row])],
    /// Whether the newest chart has it.
    pub is_current: bool,
}

/// The parts of the chart.
pub const PARTS: [Part; 7] = [
    Part { names: &["operator", "tenant-operator"], rows: &[("", tenants::ROWS)], is_current: true },
    Part {
        names: &["instance-operator"],
        rows: &[
            ("configurations.", instances::ACCESS),
            ("configurations.containerEnvironmentOptions.", instances::IMAGES),
            ("configurations.", instances::SERVICES),
            ("configurations.automation.", instances::AUTOMATION),
            ("", instances::REST),
        ],
        is_current: true,
    },
    Part { names: &["bastion", "bastion-operator"], rows: &[("", others::BASTION)], is_current: true },
    Part { names: &["exam-agent"], rows: &[("", others::EXAMS)], is_current: true },
    Part { names: &["crownmail"], rows: &[("", others::MAIL)], is_current: true },
    Part { names: &["image-list"], rows: &[("", others::IMAGE_LIST)], is_current: false },
    Part { names: &["instmetrics"], rows: &[("", others::INSTANCE_METRICS)], is_current: false },
];

impl Part {
    /// The rows, with whole paths below `name`.
    pub fn rows(&self, name: &str) -> Vec<(String, Fate)> {
        self.rows.iter().flat_map(|(begin, rows)| below(&format!("{name}{begin}"), rows)).collect()
    }
}

/// The rows, with this beginning of each path.
pub fn below(begin: &str, rows: &[Row]) -> Vec<(String, Fate)> {
    rows.iter().map(|(path, fate)| (format!("{begin}{path}"), *fate)).collect()
}

/// Values outside of the parts.
pub const WHOLE: &[Row] = others::WHOLE;

const IMAGES: Fate = Fate::Left("the daemon has other images: `image` and `imagePullSecrets` of its chart");
const REPLICAS: Fate =
    Fate::Left("two replicas run, and one of them leads: `replicas` and `bastion.replicas` of the chart");
const NAMES: Fate = Fate::Left("objects of the daemon's release are named after it");
const ANNOTATIONS: Fate = Fate::Left(
    "these annotations are for the operators' pods; `podAnnotations` of the chart sets annotations \
     of the daemon's pods",
);
const SECURITY: Fate = Fate::Left("the daemon's pods already run without privileges");
const RESOURCES: Fate = Fate::Left("the daemon needs less: `resources` of the chart");
const CONCURRENCY: Fate = Fate::Left("each loop has `concurrency`, with a higher default");
const GLOBAL: Fate = Fate::Left("only `global` of the whole chart is used");
const CERTIFICATE: Fate = Fate::Left(
    "the daemon issues the certificate of its webhooks; `webhook.certManager` of the chart uses cert-manager",
);
/// Values that every part has: settings of its pods.
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
