//! What is asked of Keycloak: names for metrics and sentences.

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new token for the service account.
    Token,
    /// A user by name.
    FindUser,
    /// A new user.
    CreateUser,
    /// Other names or another e-mail address.
    UpdateUser,
    /// The mail with which a user takes the actions that are required.
    SendMail,
    /// A user's end.
    DeleteUser,
    /// The client that holds the roles.
    RolesClient,
    /// A role by name.
    FindRole,
    /// A new role.
    CreateRole,
    /// Another description.
    UpdateRole,
    /// A role's end.
    DeleteRole,
    /// The roles that a user has.
    UserRoles,
    /// More roles for a user.
    AddRoles,
    /// Fewer roles for a user.
    RemoveRoles,
}

impl Operation {
    /// The value of the `operation` label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::FindUser => "find_user",
            Self::CreateUser => "create_user",
            Self::UpdateUser => "update_user",
            Self::SendMail => "send_action_mail",
            Self::DeleteUser => "delete_user",
            Self::RolesClient => "roles_client",
            Self::FindRole => "role",
            Self::CreateRole => "create_role",
            Self::UpdateRole => "update_role_description",
            Self::DeleteRole => "delete_role",
            Self::UserRoles => "user_roles",
            Self::AddRoles => "add_roles",
            Self::RemoveRoles => "remove_roles",
        }
    }

    /// The operation, behind "Keycloak cannot".
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Token => "get a token",
            Self::FindUser => "find a user",
            Self::CreateUser => "create a user",
            Self::UpdateUser => "update a user",
            Self::SendMail => "send a mail to a user",
            Self::DeleteUser => "delete a user",
            Self::RolesClient => "find the client that holds the roles",
            Self::FindRole => "find a role",
            Self::CreateRole => "create a role",
            Self::UpdateRole => "update a role",
            Self::DeleteRole => "delete a role",
            Self::UserRoles => "list the roles of a user",
            Self::AddRoles => "give roles to a user",
            Self::RemoveRoles => "take roles from a user",
        }
    }

    /// The role of the client `realm-management` that it takes (docs/keycloak.md).
    pub(super) fn role(self) -> &'static str {
        match self {
            Self::RolesClient | Self::FindRole | Self::CreateRole | Self::UpdateRole | Self::DeleteRole => {
                "manage-clients"
            }
            _ => "manage-users",
        }
    }
}
