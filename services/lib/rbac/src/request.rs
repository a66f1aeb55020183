//! The attributes of a request that rules select by.

/// A request to decide about.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The user of the request.
    pub user: User<'a>,
    /// The verb or, for a path, the method in lower case.
    pub verb: &'a str,
    /// The resource or the path.
    pub target: Target<'a>,
}

/// The names by which a user has roles.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The name of the user.
    pub name: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
}

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A resource of the API.
    Resource(Resource<'a>),
    /// Another path of the server.
    Path(&'a str),
}

/// A resource, served or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resource<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The plural. One with a slash is matched by `*` only.
    pub resource: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// Empty for a collection.
    pub name: &'a str,
    /// Empty for all namespaces and for cluster-scoped resources.
    pub namespace: &'a str,
}

impl<'a> Request<'a> {
    /// Returns the namespace whose RoleBindings apply; empty if those of ClusterRoles alone do.
    pub(crate) const fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource(resource) => resource.namespace,
            Target::Path(_) => "",
        }
    }
}
