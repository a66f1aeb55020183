//! The name of what a request is passed on to: `name`, `name:port`, `scheme:name:` or `scheme:name:port`.

/// A name with its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub is_https: bool,
    pub name: String,
    /// A number or, of a Service, a name; empty if there is none.
    pub port: String,
}

impl Name {
    /// Reads a name; `None` if it is malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let is_https = match scheme {
            "" | "http" => false,
            "https" => true,
            _ => return None,
        };
        (!name.is_empty()).then(|| Self {
            is_https,
            name: name.to_owned(),
            port: port.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of upstream's `TestSplitSchemeNamePort`.
    #[test]
    fn a_name_may_have_a_scheme_and_a_port() {
        let parsed = |text| Name::parse(text).map(|name| (name.is_https, name.name, name.port));
        let some = |is_https, name: &str, port: &str| Some((is_https, name.into(), port.into()));
        assert_eq!(parsed("aoeu"), some(false, "aoeu", ""));
        assert_eq!(parsed("aoeu:asdf"), some(false, "aoeu", "asdf"));
        assert_eq!(parsed("http:aoeu:"), some(false, "aoeu", ""));
        assert_eq!(parsed("https:aoeu:asdf"), some(true, "aoeu", "asdf"));
        for malformed in ["", ":asdf", "foo:asdf:", "a:b:c:d"] {
            assert_eq!(parsed(malformed), None, "{malformed}");
        }
    }
}
