//! The former names of counters, without the suffix `_total`.
//!
//! Dashboards and queries of the Go operators use the former names, so each series is exposed under both names. The
//! type of a former name is `untyped`, because by Prometheus conventions the name of a counter ends in `_total`.

use std::fmt::Write;

/// The former names. Appending `_total` gives the current names.
pub const FORMER_NAMES: [&str; 4] = [
    "tenant_operator_internal_errors",
    "bastion_ssh_connections",
    "bastion_instance_ssh_connections",
    "bastion_web_ssh_connections",
];

/// The help text of a former name.
pub fn help(former: &str) -> String {
    format!("The same as {former}_total, for dashboards that use the former name")
}

/// Appends the series of an exposition under their former names.
pub fn append(exposition: &mut String) {
    let mut copies = String::new();
    for former in FORMER_NAMES {
        let samples = exposition.lines().filter_map(|line| {
            let sample = line.strip_prefix(former)?.strip_prefix("_total")?;
            sample.starts_with(['{', ' ']).then_some(sample)
        });
        for (number, sample) in samples.enumerate() {
            // Writing to a string does not fail.
            if number == 0 {
                let _ = write!(copies, "# HELP {former} {}\n# TYPE {former} untyped\n", help(former));
            }
            let _ = writeln!(copies, "{former}{sample}");
        }
    }
    exposition.push_str(&copies);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_its_former_name_with_the_same_value() {
        let present = "\
# HELP bastion_ssh_connections_total SSH connections
# TYPE bastion_ssh_connections_total counter
bastion_ssh_connections_total{destination_ip=\"10.0.0.5\"} 7
bastion_ssh_connections_evicted_total 1
tenant_operator_internal_errors_total 2
";
        let mut text = present.to_owned();
        append(&mut text);
        let former = "\
# HELP tenant_operator_internal_errors The same as tenant_operator_internal_errors_total, for dashboards that use the former name
# TYPE tenant_operator_internal_errors untyped
tenant_operator_internal_errors 2
# HELP bastion_ssh_connections The same as bastion_ssh_connections_total, for dashboards that use the former name
# TYPE bastion_ssh_connections untyped
bastion_ssh_connections{destination_ip=\"10.0.0.5\"} 7
";
        assert_eq!(text, format!("{present}{former}"));
        let mut none = "up 1\n".to_owned();
        append(&mut none);
        assert_eq!(none, "up 1\n");
    }
}
