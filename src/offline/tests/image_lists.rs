//! Image lists: the configuration defines them, and a registry supplies their content.

use super::*;

#[tokio::test]
async fn registries_are_not_contacted() {
    // The listener detects any connection to the registry.
    let registry = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    registry.set_nonblocking(true).expect("a socket");
    let url = format!("http://{}", registry.local_addr().expect("an address"));
    let mut config = Config::default();
    config.controllers.image_list.enabled = true;
    let entry = |name: &str| {
        let entry = json!({"imageListName": name, "url": url, "registryName": "r.example.org",
            "username": "ada", "passwordFile": "/nowhere"});
        serde_json::from_value(entry).expect("a registry")
    };
    config.controllers.image_list.registries = vec![entry("absent"), entry("present")];
    let list = |name: &str| {
        json!({
            "apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "ImageList", "metadata": {"name": name},
            "spec": {"registryName": "other.example.org", "images": [{"name": "a", "versions": ["1"]}]},
        })
    };
    let documents = ["present", "unnamed"].map(|name| ("file".to_owned(), list(name)));
    let output = plan_documents(documents.into(), &config).expect("a plan");
    assert_eq!(output.objects, [] as [Value; 0], "they stay as they are");
    let remark = |name: &str| {
        format!(
            "ImageList {name}: its images come from the registry at {url}, which is read every 5m, but not by this command"
        )
    };
    assert_eq!(output.messages, [remark("absent"), remark("present")]);
    assert!(registry.accept().is_err(), "the registry was contacted");
}
