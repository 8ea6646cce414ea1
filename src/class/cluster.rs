//! The requests of an action, as the user who starts it.

use std::future::Future;

use serde::de::IgnoredAny;

use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::client::{Call, Credential, UserClient};
use crate::runtime::error::ApiError;

/// A cluster, with the credential of a user. All functions return the errors of the API server.
pub trait Cluster: Sync {
    /// Lists the objects of a namespace, or of all namespaces if it is empty. `query` contains the encoded parameters
    /// that select them.
    fn list<T: Kind>(
        &self,
        namespace: &str,
        query: &str,
    ) -> impl Future<Output = Result<Vec<Object<T>>, ApiError>> + Send;

    /// Reads an object.
    fn get<T: Kind>(&self, key: &ObjectKey) -> impl Future<Output = Result<Object<T>, ApiError>> + Send;

    /// Sends a change.
    fn call(&self, call: Call) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// A user of the dashboard.
pub struct AsUser {
    /// The client.
    pub client: UserClient,
    /// The credential of the user.
    pub credential: Credential,
}

impl Cluster for AsUser {
    async fn list<T: Kind>(&self, namespace: &str, query: &str) -> Result<Vec<Object<T>>, ApiError> {
        self.client.list::<T>(&self.credential, namespace, query).await
    }

    async fn get<T: Kind>(&self, key: &ObjectKey) -> Result<Object<T>, ApiError> {
        self.client.get::<T>(&self.credential, key).await
    }

    async fn call(&self, call: Call) -> Result<(), ApiError> {
        self.client.call::<IgnoredAny>(&self.credential, call).await.map(drop)
    }
}
