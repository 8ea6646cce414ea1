//! Reads and writes single objects like `kubectl`, without starting a process: tests that wait for a state poll
//! many times a second.

use std::collections::HashMap;

use anyhow::{Context as _, Result, anyhow};
use futures::future::try_join_all;
use http::Request;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{
    DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
    ValidationDirective,
};
use kube::discovery::{ApiCapabilities, ApiResource, Discovery, Scope};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The field manager of the writes.
const MANAGER: &str = "kubectl";

/// Resources that exist for the authorizer only: the objects of the verb `impersonate`.
const OF_THE_AUTHORIZER: [&str; 2] = ["users", "groups"];

/// A kind as the API server serves it.
type Served = (ApiResource, ApiCapabilities);

/// A user whose rights are checked.
#[derive(Debug, Clone, Copy)]
pub struct User {
    /// The user's name.
    pub name: &'static str,
    /// The groups that the user is in.
    pub groups: &'static [&'static str],
}

/// Requests with the rights of a client.
pub struct Direct {
    client: Client,
    /// Kinds by `plural`, `singular`, `plural.group` and `Kind.group/version`.
    kinds: Mutex<HashMap<String, Served>>,
}

impl Direct {
    /// Sends its requests with `client`.
    pub fn new(client: Client) -> Self {
        Self { client, kinds: Mutex::default() }
    }

    /// An object, or `None` if it does not exist. The namespace is ignored for cluster-scoped kinds.
    pub async fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let served = self.served(kind).await?;
        match self.ask(&format!("{}/{name}", path(&served, namespace))).await {
            Ok(object) => Ok(Some(brief(object))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("{kind} {name}")),
        }
    }

    /// The objects of some kinds (separated by commas) in a namespace; the empty namespace stands for all namespaces.
    pub async fn list(&self, kinds: &str, namespace: &str) -> Result<Vec<Value>> {
        let lists = kinds.split(',').map(async |kind| {
            let served = self.served(kind).await?;
            let mut list = self.ask(&path(&served, namespace)).await.with_context(|| kind.to_owned())?;
            let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            // The items of a list come without kind and apiVersion.
            let named = items.into_iter().map(move |mut item| {
                item["kind"] = json!(served.0.kind);
                item["apiVersion"] = json!(served.0.api_version);
                brief(item)
            });
            anyhow::Ok(named.collect::<Vec<_>>())
        });
        Ok(try_join_all(lists).await?.concat())
    }

    /// Applies the objects in a YAML text (server-side, with force, and with the strict validation of `kubectl`).
    pub async fn apply(&self, yaml: &str) -> Result<()> {
        let params = PatchParams {
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::apply(MANAGER).force()
        };
        let objects = serde_saphyr::from_multiple::<Value>(yaml).context("the YAML")?;
        for object in objects.iter().filter(|object| !object.is_null()) {
            let (kind, metadata) = (object["kind"].as_str().unwrap_or_default(), &object["metadata"]);
            let name = metadata["name"].as_str().context("an object without a name")?;
            let namespace = metadata["namespace"].as_str().unwrap_or_default();
            let version = object["apiVersion"].as_str().unwrap_or_default();
            let api = self.api(&self.served(&format!("{kind}.{version}")).await?, namespace);
            api.patch(name, &params, &Patch::Apply(object))
                .await
                .with_context(|| format!("{kind} {name}"))?;
        }
        Ok(())
    }

    /// Merge-patches an object, or a subresource such as its status.
    pub async fn patch(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        patch: &str,
    ) -> Result<()> {
        let api = self.api(&self.served(kind).await?, namespace);
        let patch: Value = serde_json::from_str(patch).context("the patch")?;
        let (params, patch) = (
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() },
            Patch::Merge(&patch),
        );
        let patched = match subresource {
            None => api.patch(name, &params, &patch).await,
            Some(part) => api.patch_subresource(part, name, &params, &patch).await,
        };
        patched.map(drop).with_context(|| format!("{kind} {name}"))
    }

    /// Deletes an object, and its dependents according to `policy`. Returns its uid if it still exists (finalizers).
    pub async fn delete(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        policy: PropagationPolicy,
    ) -> Result<Option<String>> {
        let api = self.api(&self.served(kind).await?, namespace);
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        let answer = api.delete(name, &params).await.with_context(|| format!("{kind} {name}"))?;
        Ok(answer.left().and_then(|object| object.metadata.uid))
    }

    /// Deletes all objects of a kind in a namespace, and their dependents according to `policy`, in one request.
    pub async fn delete_all(&self, kind: &str, namespace: &str, policy: PropagationPolicy) -> Result<()> {
        let api = self.api(&self.served(kind).await?, namespace);
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        let answer = api.delete_collection(&params, &ListParams::default()).await;
        answer.map(drop).with_context(|| format!("all {kind} in {namespace}"))
    }

    /// A token of a service account, valid for a day.
    pub async fn token(&self, namespace: &str, service_account: &str) -> Result<String> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let day = TokenRequestSpec { expiration_seconds: Some(24 * 3600), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(day), ..TokenRequest::default() };
        let answer = api.create_token_request(service_account, &PostParams::default(), &request).await;
        let status = answer.with_context(|| format!("a token of {service_account}"))?.status;
        status.and_then(|status| status.token).context("a token request without an answer")
    }

    /// Whether the authorizer allows a user a request. `resource` is a plural name, followed by a slash and a
    /// subresource if needed.
    pub async fn may(
        &self,
        user: &User,
        verb: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<bool> {
        let (kind, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (group, version, kind) = if let Some((plural, group)) = kind.split_once('.') {
            // An API that need not be installed.
            (group.to_owned(), String::new(), plural.to_owned())
        } else if OF_THE_AUTHORIZER.contains(&kind) {
            (String::new(), String::new(), kind.to_owned())
        } else {
            let (served, _) = self.served(kind).await?;
            (served.group, served.version, served.plural)
        };
        let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
            "user": user.name,
            "groups": user.groups,
            "resourceAttributes": {
                "verb": verb, "group": group, "version": version, "resource": kind,
                "subresource": subresource, "namespace": namespace, "name": name,
            },
        }}))?;
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    fn api(&self, (resource, capabilities): &Served, namespace: &str) -> Api<DynamicObject> {
        if capabilities.scope == Scope::Namespaced {
            let namespace = if namespace.is_empty() { "default" } else { namespace };
            Api::namespaced_with(self.client.clone(), namespace, resource)
        } else {
            Api::all_with(self.client.clone(), resource)
        }
    }

    async fn ask(&self, path: &str) -> Result<Value, kube::Error> {
        let request = || Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
        match self.client.request(request()?).await {
            // The server may close a connection just as it is reused.
            Err(kube::Error::Service(_)) => self.client.request(request()?).await,
            answer => answer,
        }
    }

    /// How a kind is served. The discovery is repeated for an unknown kind.
    async fn served(&self, kind: &str) -> Result<Served> {
        let known = || self.kinds.lock();
        if let Some(served) = known().get(kind) {
            return Ok(served.clone());
        }
        let discovery = Discovery::new(self.client.clone()).run_aggregated().await?;
        let mut kinds = HashMap::new();
        for group in discovery.groups_alphabetical() {
            for served in group.resources_by_stability() {
                let resource = &served.0;
                kinds.insert(format!("{}.{}", resource.plural, resource.group), served.clone());
                // The core group, whose name is empty, comes first and wins, as with kubectl.
                kinds.entry(resource.kind.to_lowercase()).or_insert_with(|| served.clone());
                kinds.entry(resource.plural.clone()).or_insert(served);
            }
            for served in group.versions().flat_map(|version| group.versioned_resources(version)) {
                kinds.insert(format!("{}.{}", served.0.kind, served.0.api_version), served);
            }
        }
        let found = kinds.get(kind).cloned();
        *known() = kinds;
        found.ok_or_else(|| anyhow!("the API server has no kind {kind}"))
    }
}

/// An object without `managedFields`.
fn brief(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

fn path((resource, capabilities): &Served, namespace: &str) -> String {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let version = &resource.api_version;
    let within = if capabilities.scope == Scope::Namespaced && !namespace.is_empty() {
        format!("/namespaces/{namespace}")
    } else {
        String::new()
    };
    format!("{root}/{version}{within}/{}", resource.plural)
}
