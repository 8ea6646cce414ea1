//! The reads of the pages of people. No page reads all Tenants.

use futures::future::join_all;
use futures::join;
use jiff::Timestamp;

use super::{People, Person};
use crate::api::tenant::{Tenant, TenantKind};
use crate::controllers::dashboard::admin::listed::{ROWS, continued, is_expired};
use crate::controllers::dashboard::history::model::{Did, History, Told};
use crate::controllers::dashboard::history::read::events_of_cluster;
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::student::read::{Own, Reads};
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The maximum number of people that a search shows. Each of them is one request.
const MOST_FOUND: usize = 25;

impl Reads<'_> {
    /// Reads a page of the people, or the people that a search finds. An expired token leads to the first page.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn all_people(
        &self,
        namespace: &str,
        search: &str,
        next: &str,
    ) -> Result<(Own, People), ApiError> {
        let kind = KindInfo::of::<TenantKind>();
        // A search requires the same right as the list.
        let (query, rows) = if search.is_empty() { (continued(next), ROWS) } else { (String::new(), 1) };
        let page = self.one_page::<Tenant>(kind, "", &query, rows);
        let (own, page) = join!(self.administrator(namespace), page);
        let page = match page {
            Err(error) if is_expired(&error, next) => self.one_page(kind, "", "", ROWS).await?,
            page => page?,
        };
        if search.is_empty() {
            return Ok((own?, People { rows: page.objects, next: page.next, found: None }));
        }
        // The watch of the dashboard has the names of the people. Everything else about them is read as the user.
        let mut names = self.users.names_like(search);
        let found = Some(names.len());
        names.truncate(MOST_FOUND);
        let keys: Vec<ObjectKey> = names.iter().map(|name| ObjectKey::new("", name.as_str())).collect();
        let tenants = keys.iter().map(|key| self.users.client.get::<TenantKind>(&self.user.credential, key));
        let mut rows = Vec::new();
        for tenant in join_all(tenants).await {
            match tenant {
                Ok(tenant) => rows.push(tenant),
                // Deleted since.
                Err(ApiError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((own?, People { rows, next: String::new(), found }))
    }

    /// Reads a person, with who did what with the Tenant, and when.
    ///
    /// # Errors
    /// The error of the API server; [`ApiError::NotFound`] also for a name that no person can have.
    pub async fn one_person(
        &self,
        namespace: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<(Own, Person), ApiError> {
        let (key, kind) = (ObjectKey::new("", name), KindInfo::of::<TenantKind>());
        key.check().map_err(|error| ApiError::NotFound(error.to_string()))?;
        let tenant = self.users.client.get_as::<Told<TenantKind>>(&self.user.credential, kind, &key);
        let (own, tenant) = join!(self.administrator(namespace), tenant);
        let (mut own, Told { object: tenant, recorded }) = (own?, tenant?);
        own.topics.push(Topic::Tenant(name.to_owned()));
        let events = events_of_cluster(self.users, self.user, &own.rules.rules, tenant.uid()).await;
        let login = tenant.spec.last_login.as_ref().map(|at| (at.0, Did::LoggedIn));
        let history = History::of(&recorded, &tenant.status.conditions, login.as_slice(), events, now);
        Ok((own, Person { tenant, history }))
    }
}
