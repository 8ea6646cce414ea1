//! The configuration file while the process runs.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tracing::{info, warn};

use super::logging::LogFilter;
use crate::config::{Config, file};
use crate::runtime::files::WatchedFile;
use crate::runtime::merge;
use crate::runtime::plan::to_value;

/// The keys whose change is applied at once; a change of any other key is applied at the next start.
pub const RELOADED: [&str; 1] = ["log.filter"];

/// Watches the configuration file and applies changes of the keys in [`RELOADED`].
pub fn configuration_file(path: PathBuf, running: Arc<Config>, filter: LogFilter) -> WatchedFile {
    let name = path.display().to_string();
    let mut current = running.log.filter.clone();
    WatchedFile::new("--config", path, move |content| {
        let text = content.as_deref().map_err(Clone::clone).and_then(file::text);
        let config = match text.map(|text| Config::parse(&name, text)) {
            Ok(Ok(config)) => config,
            Ok(Err(error)) => {
                warn!(%error, "the changed configuration is invalid; the previous one stays in effect");
                return;
            }
            Err(problem) => {
                warn!(
                    "--config: {name} cannot be read; the previous configuration stays in effect: {problem}"
                );
                return;
            }
        };
        if config.log.filter != current {
            match filter.set(&config.log.filter) {
                Ok(()) => info!(filter = config.log.filter, "the log filter has changed"),
                Err(error) => warn!(%error, "the log filter cannot be used"),
            }
            current.clone_from(&config.log.filter);
        }
        let keys = restarting(&running, &config).join(", ");
        if !keys.is_empty() {
            info!(keys, "the configuration has changed; these keys take effect at the next start");
        }
    })
}

/// The paths of the keys that differ between two configurations and are applied only at the next start.
fn restarting(old: &Config, new: &Config) -> Vec<String> {
    changed(old, new).into_iter().filter(|key| !RELOADED.contains(&key.as_str())).collect()
}

/// The paths of the keys that differ between two configurations.
fn changed(old: &Config, new: &Config) -> Vec<String> {
    fn collect(path: &str, difference: &Value, old: &Value, paths: &mut Vec<String>) {
        match (difference, old) {
            // If only one of them has the key, no key below it is reported.
            (Value::Object(members), Value::Object(known)) => {
                for (key, value) in members {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(&path, value, known.get(key).unwrap_or(&Value::Null), paths);
                }
            }
            _ => paths.push(path.to_owned()),
        }
    }
    let (old, new) = (to_value(old), to_value(new));
    let mut paths = Vec::new();
    if let Some(difference) = merge::difference(&old, &new) {
        collect("", &difference, &old, &mut paths);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_need_a_restart_are_named() {
        let parse = |more: &str| {
            let head =
                "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n";
            Config::parse("test", &format!("{head}{more}")).expect("a configuration")
        };
        let old = parse("selector: {a: b}\n");
        let new = parse("selector: {a: c}\ncontrollers: {tenant: {keepAlive: 2d, myDrive: {size: 2Gi}}}\n");
        assert_eq!(changed(&old, &old), [""; 0]);
        let keys = ["selector.a", "controllers.tenant.keepAlive", "controllers.tenant.myDrive.size"];
        assert_eq!(restarting(&old, &new), keys);
        let filtered = parse("selector: {a: b}\nlog: {filter: debug, format: json}\n");
        assert_eq!(
            (changed(&old, &filtered), restarting(&old, &filtered)),
            (vec!["log.format".to_owned(), "log.filter".to_owned()], vec!["log.format".to_owned()])
        );
    }
}
