//! Configurations of the daemon with few loops.

/// The loops that run unless a configuration turns them off.
const BY_DEFAULT: [&str; 7] =
    ["workspace", "tenant", "template", "instance", "publicExposure", "sharedVolume", "snapshot"];

/// The line of a configuration with which these loops run and no others. Each has its keys in the form of YAML in one
/// line, such as `concurrency: 2, notificationInterval: 1d`, or "".
pub fn only(loops: &[(&str, &str)]) -> String {
    let is_off = |name: &&str| loops.iter().all(|(on, _)| on != name);
    let off = BY_DEFAULT.into_iter().filter(is_off).map(|name| format!("{name}: {{enabled: false}}"));
    let on = loops.iter().map(|(name, keys)| format!("{name}: {{enabled: true, {keys}}}"));
    format!("controllers: {{{}}}\n", off.chain(on).collect::<Vec<_>>().join(", "))
}
