//! The faults that are reported for the registries of image lists.

use super::*;

/// The faults of these entries, which begin in line 6.
fn faults_of(entries: &str) -> Vec<String> {
    faults_below(&format!("controllers:\n  imageList:\n    registries:\n{entries}"))
}

#[test]
fn registries_of_both_types_are_read() {
    let entries = "    - {imageListName: a, url: 'https://r.example.org/', registryName: 'r.example.org:5000', username: ada, passwordFile: /p}
    - {imageListName: b, type: harbor, url: 'http://h:8080', registryName: h, project: labs, usernameFile: /u, passwordFile: /p}
    - {imageListName: c, url: 'http://h:8080', registryName: h, project: a/b, tokenUrl: 'https://t/token', caFile: /c}
";
    let config = parsed(&format!("controllers:\n  imageList:\n    registries:\n{entries}"));
    let registries = &config.controllers.image_list.registries;
    assert_eq!(registries.len(), 3);
    assert_eq!(
        (registries[0].type_, &*registries[1].artifact_types),
        (RegistryType::Docker, &["IMAGE".to_owned()][..])
    );
}

#[test]
fn registries_that_contradict_themselves_are_refused() {
    let entries = "    - {imageListName: a, url: 'https://r', registryName: r}
    - imageListName: a
      type: harbor
      url: https://r
      registryName: r
      artifactTypes: []
      tokenUrl: https://t
    - {imageListName: b, url: 'https://r', registryName: r, username: 'a:b', artifactTypes: [CHART]}
    - {imageListName: c, url: 'https://r', registryName: r, passwordFile: /p}
    - {imageListName: d, type: harbor, project: a/b, url: 'https://r', registryName: r, username: a, usernameFile: /u, passwordFile: /p}
";
    let key = |rest: &str| format!("controllers.imageList.registries{rest}");
    let expected = [
        format!(
            "f.yaml:7: {}: another registry has the same name; expected a separate ImageList for each registry",
            key("[1].imageListName")
        ),
        format!(
            "f.yaml:7: {}: the type is harbor and project is empty; expected the project to list",
            key("[1].project")
        ),
        format!(
            "f.yaml:11: {}: empty; expected the types to list, such as [IMAGE]",
            key("[1].artifactTypes")
        ),
        format!(
            "f.yaml:12: {}: the type is harbor, which takes the password itself; expected \"\"",
            key("[1].tokenUrl")
        ),
        format!(
            "f.yaml:13: {}: the API docker does not report the types of artifacts; expected no artifactTypes, \
             or type: harbor",
            key("[2].artifactTypes")
        ),
        format!(
            "f.yaml:13: {}: it contains a colon, which would end the user name; expected a name without colon",
            key("[2].username")
        ),
        format!(
            "f.yaml:13: {}: the user has no password; expected the file with the password",
            key("[2].passwordFile")
        ),
        format!(
            "f.yaml:14: {}: no user name is given; expected username or usernameFile as well",
            key("[3].passwordFile")
        ),
        format!("f.yaml:15: {}: it contains a slash; expected one project of Harbor", key("[4].project")),
        format!(
            "f.yaml:15: {}: username and usernameFile are both given; expected one of them",
            key("[4].usernameFile")
        ),
    ];
    assert_eq!(faults_of(entries), expected);
}

#[test]
fn values_of_a_registry_are_checked() {
    let entries = "    - {imageListName: A, url: r.example.org, registryName: 'https://r', project: /a, type: quay, artifactTypes: [image], password: x}
    - {url: 'https://user@r', registryName: ''}
";
    let faults = faults_of(entries);
    for (key, problem) in [
        ("[0].imageListName", "\"A\" is not valid"),
        ("[0].url", "\"r.example.org\" is not valid; expected the URL of a registry"),
        ("[0].registryName", "\"https://r\" is not valid"),
        ("[0].project", "\"/a\" is not valid"),
        ("[0].type", "\"quay\" is not valid; expected docker or harbor"),
        ("[0].artifactTypes[0]", "\"image\" is not valid"),
        ("[0].password", "unknown key; known here: imageListName, type, url"),
        ("[1].imageListName", "missing"),
        ("[1].url", "\"https://user@r\" is not valid"),
        ("[1].registryName", "empty; expected a registry as written in image names"),
    ] {
        let begin = format!(": controllers.imageList.registries{key}: {problem}");
        assert!(faults.iter().any(|fault| fault.contains(&begin)), "{begin}\n{faults:#?}");
    }
    assert!(!faults.iter().any(|fault| fault.contains("another registry")), "{faults:#?}");
}

#[test]
fn missing_registries_and_intervals_out_of_range_are_rejected() {
    let registry = "registries: [{imageListName: a, url: 'https://r', registryName: r}]";
    for (keys, expected) in [
        (
            "enabled: true",
            "f.yaml:3: controllers.imageList.enabled: imageList is enabled and registries is empty; expected at least one registry",
        ),
        (
            "enabled: true, registries: []",
            "f.yaml:3: controllers.imageList.registries: imageList is enabled and registries is empty; expected at least one registry",
        ),
        (
            "updateInterval: 4s",
            "f.yaml:3: controllers.imageList.updateInterval: 4s is out of range; expected from 5s to 1d",
        ),
        (
            "updateInterval: 25h",
            "f.yaml:3: controllers.imageList.updateInterval: 25h is out of range; expected from 5s to 1d",
        ),
        (
            "updateInterval: 0s",
            "f.yaml:3: controllers.imageList.updateInterval: 0s is out of range; expected from 5s to 1d",
        ),
    ] {
        let faults = faults_below(&format!("controllers: {{imageList: {{{keys}}}}}\n"));
        assert_eq!(faults, [expected], "{keys}");
    }
    for interval in ["5s", "1d"] {
        let keys = format!("enabled: true, updateInterval: {interval}, {registry}");
        parsed(&format!("controllers: {{imageList: {{{keys}}}}}\n"));
    }
    let entry = |number| format!("    - {{imageListName: l{number}, url: 'https://r', registryName: r}}");
    let many = (0..65).map(entry).collect::<Vec<_>>().join("\n") + "\n";
    let expected = "f.yaml:5: controllers.imageList.registries: it has 65 entries; expected at most 64";
    assert_eq!(faults_of(&many), [expected]);
}
