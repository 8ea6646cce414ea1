//! Configurations: of the daemon with few loops, and of the API server that calls its webhooks.

use serde_json::Value;

/// The loops that run unless a configuration turns them off.
fn on_by_default() -> Vec<String> {
    let document: Value = serde_saphyr::from_str(include_str!("../../config/crownlabs.yaml")).expect("YAML");
    let loops = document["controllers"].as_object().expect("the loops");
    loops.iter().filter(|(_, keys)| keys["enabled"] == true).map(|(name, _)| name.clone()).collect()
}

/// The line of a configuration that turns on only these loops. Each has its keys as YAML in one line, such as
/// `concurrency: 2, notificationInterval: 1d`, or "".
pub fn only(loops: &[(&str, &str)]) -> String {
    let is_off = |name: &String| loops.iter().all(|(on, _)| on != name);
    let off = on_by_default().into_iter().filter(is_off).map(|name| format!("{name}: {{enabled: false}}"));
    let on = loops.iter().map(|(name, keys)| format!("{name}: {{enabled: true, {keys}}}"));
    format!("controllers: {{{}}}\n", off.chain(on).collect::<Vec<_>>().join(", "))
}

/// The webhook configurations of the project, for a server at that port of this machine in place of a Service, and for
/// a daemon with this value of the selector label.
pub fn webhooks(selector: &str, port: u16) -> String {
    let text = include_str!("../../manifests/40-webhooks.yaml");
    let service = "service: {name: crownlabs-webhook, namespace: crownlabs-system, path: ";
    let lines = text.lines().map(|line| match line.trim_start().strip_prefix(service) {
        Some(path) => format!("    url: \"https://127.0.0.1:{port}{}\"", path.trim_end_matches('}')),
        None => line.replace("operator-selector=production", &format!("operator-selector={selector}")),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.split("\n---\n").filter(|part| !part.contains("kind: Service")).collect::<Vec<_>>().join("\n---\n")
}
