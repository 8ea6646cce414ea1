//! Configurations of the daemon with few loops.

use serde_json::Value;

/// The loops that run unless a configuration turns them off.
fn on_by_default() -> Vec<String> {
    let document: Value = serde_saphyr::from_str(include_str!("../../config/crownlabs.yaml")).expect("YAML");
    let loops = document["controllers"].as_object().expect("the loops");
    loops.iter().filter(|(_, keys)| keys["enabled"] == true).map(|(name, _)| name.clone()).collect()
}

/// The line of a configuration with which these loops run and no others. Each has its keys in the form of YAML in one
/// line, such as `concurrency: 2, notificationInterval: 1d`, or "".
pub fn only(loops: &[(&str, &str)]) -> String {
    let is_off = |name: &String| loops.iter().all(|(on, _)| on != name);
    let off = on_by_default().into_iter().filter(is_off).map(|name| format!("{name}: {{enabled: false}}"));
    let on = loops.iter().map(|(name, keys)| format!("{name}: {{enabled: true, {keys}}}"));
    format!("controllers: {{{}}}\n", off.chain(on).collect::<Vec<_>>().join(", "))
}
