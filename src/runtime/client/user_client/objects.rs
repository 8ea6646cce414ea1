//! The objects that users read and change: by the type of a kind, or by its names and as JSON.

use http::Method;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{Call, Content, Credential, Patch, UserClient};
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

impl UserClient {
    /// Reads an object.
    ///
    /// # Errors
    /// The error from the API server.
    pub async fn get<T: Kind>(&self, user: &Credential, key: &ObjectKey) -> Result<Object<T>, ApiError> {
        self.get_as(user, KindInfo::of::<T>(), key).await
    }

    /// Like [`UserClient::get`], for the kind with these names.
    ///
    /// # Errors
    /// As for [`UserClient::get`].
    pub async fn get_as<A: DeserializeOwned>(
        &self,
        user: &Credential,
        kind: KindInfo,
        key: &ObjectKey,
    ) -> Result<A, ApiError> {
        self.ask(user, Method::GET, &kind.object_path(key)?, Content::NONE).await
    }

    /// Creates an object of the kind with these names. `body` contains everything except `apiVersion` and `kind`.
    ///
    /// # Errors
    /// The error from the API server: [`ApiError::AlreadyExists`] if the name is taken.
    pub async fn create_as<A: DeserializeOwned>(
        &self,
        user: &Credential,
        kind: KindInfo,
        namespace: &str,
        body: &Value,
    ) -> Result<A, ApiError> {
        self.call(user, Call::create(kind, namespace, body)?).await
    }

    /// Changes an object.
    ///
    /// # Errors
    /// The error from the API server: [`ApiError::Conflict`] if the version differs from the
    /// [`Preconditions`](super::Preconditions).
    pub async fn patch<T: Kind>(
        &self,
        user: &Credential,
        key: &ObjectKey,
        change: Patch<'_>,
    ) -> Result<Object<T>, ApiError> {
        self.patch_as(user, KindInfo::of::<T>(), key, change).await
    }

    /// Like [`UserClient::patch`], for the kind with these names.
    ///
    /// # Errors
    /// As for [`UserClient::patch`].
    pub async fn patch_as<A: DeserializeOwned>(
        &self,
        user: &Credential,
        kind: KindInfo,
        key: &ObjectKey,
        change: Patch<'_>,
    ) -> Result<A, ApiError> {
        self.call(user, Call::patch(kind, key, change)?).await
    }

    /// Deletes the object with this uid, of the kind with these names.
    ///
    /// # Errors
    /// The error from the API server: [`ApiError::Conflict`] if the name now belongs to another object,
    /// [`ApiError::NotFound`] if it does not exist.
    pub async fn delete_as(
        &self,
        user: &Credential,
        kind: KindInfo,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<(), ApiError> {
        self.call::<IgnoredAny>(user, Call::delete(kind, key, uid)?).await.map(drop)
    }

    /// Sends a change.
    ///
    /// # Errors
    /// The error from the API server.
    pub async fn call<A: DeserializeOwned>(&self, user: &Credential, call: Call) -> Result<A, ApiError> {
        let content = call.content();
        self.ask(user, call.method, &call.path, content).await
    }
}
