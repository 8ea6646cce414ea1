//! The relay of the official page, `qlkube`: a GraphQL document becomes these requests to the API server, with the
//! token of the user. A query becomes a GET, a creation a POST, and a change a server-side apply or a JSON Patch with
//! the field manager in the document. Each type of object that a query reaches through a wrapper is a further GET.

use std::path::PathBuf;

use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::lab::Lab;

/// The paths of the kinds.
const GROUP: &str = "/apis/crownlabs.polito.it";

/// The requests of one user.
pub struct Relay {
    runtime: Runtime,
    client: Client,
    /// The name of the user.
    pub user: &'static str,
}

/// A response: the object or list, or the status code and the message of a rejection.
pub type Response = Result<Value, (u16, String)>;

impl Relay {
    /// The relay for a user with these groups, as in the token.
    pub fn of(lab: &Lab, user: &'static str, groups: &[&str]) -> Self {
        let token = lab.cluster.user_token(user, groups, 3_600).expect("a token");
        let path: PathBuf = lab.cluster.dir().join(format!("page-{user}.kubeconfig"));
        lab.cluster.write_kubeconfig(&path, &token).expect("a kubeconfig");
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(&path).expect("a kubeconfig");
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
            Client::try_from(config.expect("a configuration")).expect("a client")
        });
        Self { runtime, client, user }
    }

    fn send(&self, method: &str, path: &str, content_type: &str, body: String) -> Response {
        let request = Request::builder().method(method).uri(format!("{GROUP}{path}"));
        let request =
            request.header("Content-Type", content_type).body(body.into_bytes()).expect("a request");
        let answer = self.runtime.block_on(async { self.client.request::<Value>(request).await });
        answer.map_err(|error| match error {
            kube::Error::Api(status) => (status.code, status.message.clone()),
            other => panic!("{method} {path}: {other}"),
        })
    }

    /// A query.
    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, "application/json", String::new())
    }

    /// A creation.
    pub fn create(&self, path: &str, object: &Value) -> Response {
        self.send("POST", path, "application/json", object.to_string())
    }

    /// A change by server-side apply: `patchCrownlabsPolitoIt…` with `applicationApplyPatchYamlInput`.
    pub fn apply(&self, path: &str, manager: &str, object: &Value) -> Response {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.send("PATCH", &path, "application/apply-patch+yaml", object.to_string())
    }

    /// A change by JSON Patch: `patchCrownlabsPolitoIt…JsonPatch` with `applicationJsonPatchJsonInput`.
    pub fn patch(&self, path: &str, manager: &str, operations: &Value) -> Response {
        let path = format!("{path}?fieldManager={manager}");
        self.send("PATCH", &path, "application/json-patch+json", operations.to_string())
    }

    /// A deletion.
    pub fn delete(&self, path: &str) -> Response {
        self.send("DELETE", path, "application/json", String::new())
    }

    /// `applyTenant`: these members of the spec, with a field manager. The page names the Tenant in the object only if
    /// it adds a user.
    pub fn apply_tenant(&self, name: &str, manager: &str, spec: &Value) -> Response {
        let mut tenant =
            json!({"kind": "Tenant", "apiVersion": "crownlabs.polito.it/v1alpha2", "spec": spec});
        if !spec["email"].is_null() {
            tenant["metadata"] = json!({"name": name});
        }
        self.apply(&format!("/v1alpha2/tenants/{name}"), manager, &tenant)
    }

    /// `applyInstance`: these members of the spec of an Instance.
    pub fn apply_instance(&self, path: &str, manager: &str, spec: &Value) -> Response {
        let instance =
            json!({"kind": "Instance", "apiVersion": "crownlabs.polito.it/v1alpha2", "spec": spec});
        self.apply(path, manager, &instance)
    }
}

/// Asserts that a request is rejected with this status code, and that the message has these words.
pub fn refused(response: Response, code: u16, words: &str) {
    match response {
        Err((status, message)) => assert!(status == code && message.contains(words), "{status} {message}"),
        Ok(object) => panic!("{code} {words}: it was admitted: {object}"),
    }
}
