//! Regular expressions of the formats, for validators that do not know the formats, such as Helm.
//!
//! A pattern matches every text that its format accepts. It may match more, which the daemon then rejects. It uses only
//! the syntax that ECMA 262, Go and Rust have in common, so it has no lookahead.

/// Expands to the pattern of a part of a text, without anchors.
macro_rules! pattern {
    (label) => {
        "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
    };
    (host) => {
        "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*"
    };
    // The name of an object, whose segments may have any length.
    (name) => {
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    };
    (word) => {
        "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
    };
    (ipv4) => {
        "[0-9]{1,3}([.][0-9]{1,3}){3}"
    };
    (ipv6) => {
        "[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*"
    };
    // From 1 to 65535.
    (port) => {
        "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
    };
    (repository) => {
        "[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*"
    };
    (tag) => {
        "[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"
    };
    (url) => {
        "https?://[^/:#?@\"$ ][^#?@\"$ ]*"
    };
    (amount) => {
        "[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?"
    };
    // A host or a bracketed IPv6 address, with a port.
    (host_port) => {
        concat!("(", pattern!(host), "|\\[[0-9A-Fa-f:.%]+\\]):", pattern!(port))
    };
    // The same, where the port may be missing.
    (authority) => {
        concat!("(", pattern!(host), "|\\[[0-9A-Fa-f:.%]+\\])(:", pattern!(port), ")?")
    };
    // An amount above 0.
    (positive_amount) => {
        "[+]?([0-9]*[1-9][0-9]*[.]?[0-9]*|[0-9]*[.][0-9]*[1-9][0-9]*)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?"
    };
    (options) => {
        "[A-Za-z0-9-]+(=\"[^\"\\\\]+\")?"
    };
    (directive) => {
        "([A-Za-z]{3,5}|[^,]*(::|\\[)[^,]*|[^,]*=[A-Za-z]{3,5})"
    };
}
