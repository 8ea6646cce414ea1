//! Single pages of lists, and pages that a pod serves.

use http::Method;
use serde::de::DeserializeOwned;

use super::{Content, Credential, Effect, MOST_BYTES, TIMEOUT, UserClient, collection};
use crate::kinds::PodKind;
use crate::runtime::ObjectKey;
use crate::runtime::answer::ListMetadata;
use crate::runtime::client::list::Listing;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::pieces::Piece;
use crate::runtime::plan::KindInfo;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<A> {
    /// Its objects.
    pub objects: Vec<A>,
    /// The token of the next page; empty for the last one.
    pub next: String,
    /// The number of objects on the further pages; 0 also for a list with selectors, because the API server does not state it then.
    pub remaining: u64,
}

impl UserClient {
    /// Reads a page of at most `most` objects of a namespace, or of all namespaces if it is empty. `query` contains the
    /// encoded parameters that select them, such as `continue`.
    ///
    /// # Errors
    /// The error from the API server; [`ApiError::TooLong`] for more than 16 MiB.
    pub async fn page_as<A: DeserializeOwned + Send>(
        &self,
        user: &Credential,
        kind: KindInfo,
        namespace: &str,
        query: &str,
        most: usize,
    ) -> Result<Page<A>, ApiError> {
        let path = collection(kind, namespace)?;
        let listing = Listing { path: &path, query, page: most, user: &user.headers, limit: TIMEOUT };
        let (mut objects, mut bytes) = (Vec::new(), 0);
        let mut take = |piece: Piece<'_>| {
            let too_long =
                || ApiError::TooLong(format!("a page of {} has more than {MOST_BYTES} bytes", kind.plural));
            let Piece::Whole(object) = piece else { return Err(too_long()) };
            bytes += object.len();
            if bytes > MOST_BYTES {
                return Err(too_long());
            }
            objects.push(decoded(object)?);
            Ok(())
        };
        let read = Box::pin(self.sender(user)?.first_page(&listing, &mut take));
        match self.breaker.pass(Effect::Read, read).await {
            Ok(ListMetadata { next, remaining, .. }) => Ok(Page { objects, next, remaining }),
            Err(error) => Err(Box::pin(self.confirmed(user, error)).await),
        }
    }

    /// Reads a page that a pod serves at a port, through the API server's proxy.
    ///
    /// # Errors
    /// The error from the API server or the pod.
    pub async fn pod_page<A: DeserializeOwned>(
        &self,
        user: &Credential,
        pod: &ObjectKey,
        port: u16,
        page: &str,
    ) -> Result<A, ApiError> {
        let path = KindInfo::of::<PodKind>().object_path(pod)?;
        self.ask(user, Method::GET, &format!("{path}:{port}/proxy{page}"), Content::NONE).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::tenant::TenantKind;
    use crate::runtime::api_server::{ApiServer, refused};

    fn user() -> Credential {
        Credential::token("token").expect("a token")
    }

    #[tokio::test]
    async fn a_page_is_one_request_and_names_the_next_page() {
        let api = ApiServer::start(|asked| {
            let next = if asked.line.contains("continue=") { "" } else { "t0-_=" };
            (200, json!({"metadata": {"continue": next, "remainingItemCount": 7}, "items": [{"metadata": {"name": "ada"}}]}))
        })
        .await;
        let client = UserClient::new(&api.config).expect("a client");
        let (user, kind) = (user(), KindInfo::of::<TenantKind>());
        let page = async |query| client.page_as::<Value>(&user, kind, "", query, 100).await.expect("a page");
        let first = page("").await;
        assert_eq!((first.objects.len(), first.next.as_str(), first.remaining), (1, "t0-_=", 7));
        assert_eq!(page("labelSelector=a&continue=t0-_%3D").await.next, "");
        let path = "GET /apis/crownlabs.polito.it/v1alpha2/tenants?limit=100";
        let lines = [path.to_owned(), format!("{path}&labelSelector=a&continue=t0-_%3D")];
        assert_eq!(api.lines(), lines);
    }

    #[tokio::test]
    async fn a_page_of_a_pod_is_requested_with_the_token_of_the_user() {
        let api = ApiServer::start(|asked| match asked.name() {
            "status" => (200, json!({"ready": true})),
            _ => refused(403, "Forbidden", "pods \"b\" is forbidden"),
        })
        .await;
        let client = UserClient::new(&api.config).expect("a client");
        let user = user();
        let page = async |pod: &str, page: &str| {
            client.pod_page::<Value>(&user, &ObjectKey::new("labs", pod), 8081, page).await
        };
        assert_eq!(page("a", "/status").await, Ok(json!({"ready": true})));
        assert_eq!(api.lines(), ["GET /api/v1/namespaces/labs/pods/a:8081/proxy/status"]);
        assert!(matches!(
            page("b", "/other").await,
            Err(ApiError::Forbidden(_) | ApiError::Transient { .. })
        ));
        assert!(matches!(page("../b", "/status").await, Err(ApiError::Invalid(_))));
    }
}
