//! What a node must be allowed at the broker, and nothing more. Provisioning writes the broker's config from it.

use super::subjects::{self, Token, api};

/// Prefix of the broker's interface in the accounts of [`broker_accounts`].
pub const ACCOUNT_API: &str = "fedkin_api";

/// Subjects a node may publish to and subscribe to; everything else is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Subjects to publish to.
    pub publish: Vec<String>,
    /// Subjects to subscribe to.
    pub subscribe: Vec<String>,
}

/// One node in the broker's config.
#[derive(Debug, Clone)]
pub struct Access {
    /// The node.
    pub node: Token,
    /// How the broker knows it, as the config says it: `user: "CN=a"`, or `user: "a", password: "secret"`.
    pub login: String,
    /// What it may.
    pub permissions: Permissions,
}

/// The accounts of a broker's config that hold every node to its permissions.
///
/// Permissions of users alone do not: the broker does not check the *reply* subject of a question, and sends its
/// answer there with its own rights. A node that may ask anything at all could delete the stream that way, or
/// write into the mailbox of another. So every node has an account of its own, to which only the subjects
/// exist that it may publish to; where else it leads an answer, nobody is.
///
/// In such an account the broker's interface has the prefix [`ACCOUNT_API`], because every account has a
/// `$JS.API` of its own: the nodes' `PostConfig::api_prefix` must say so.
pub fn broker_accounts(nodes: &[Access]) -> String {
    let accounts: String = nodes.iter().map(account).collect();
    format!(
        "accounts {{\n  fedkin {{\n    jetstream: enabled\n    exports: [\n      {{ service: \"{}.>\" }}\n      \
         {{ service: \"{}.>\", response_type: stream }}\n    ]\n  }}\n{accounts}}}\n",
        subjects::PREFIX,
        api::PREFIX
    )
}

fn account(Access { node, login, permissions }: &Access) -> String {
    let list = |subjects: Vec<String>| serde_json::Value::from(subjects).to_string();
    let publish = list(permissions.publish.iter().map(|s| local(s)).collect());
    let subscribe = list(permissions.subscribe.clone());
    let import = |s: &String| {
        let here = local(s);
        format!("      {{ service: {{ account: fedkin, subject: \"{s}\" }}, to: \"{here}\" }}\n")
    };
    let imports: String = permissions.publish.iter().map(import).collect();
    format!(
        "  \"node-{node}\" {{\n    users: [ {{ {login}, permissions: {{\n      publish: {{ allow: {publish} }}\n      \
         subscribe: {{ allow: {subscribe} }}\n    }} }} ]\n    imports: [\n{imports}    ]\n  }}\n"
    )
}

/// A subject of the inner account as the account of a node has it.
fn local(subject: &str) -> String {
    match subject.strip_prefix(api::PREFIX) {
        Some(rest) => format!("{ACCOUNT_API}{rest}"),
        None => subject.to_owned(),
    }
}

/// Of a client: it writes to its peers as itself and reads its own mailbox.
pub fn client_permissions(run: &str, me: &Token, peers: &[Token]) -> Permissions {
    let mut publish: Vec<String> = peers.iter().map(|to| subjects::link(run, to, me)).collect();
    publish.extend([
        subjects::status(run, me),
        api::create_consumer(run, me),
        api::delete_consumer(run, me),
        api::pull(run, me),
        api::get(run, &subjects::parts(run, me)),
    ]);
    Permissions { publish, subscribe: vec![format!("{}.>", subjects::inbox(me))] }
}

/// Of a server: what a client may, and to create the stream of the run and to read the status of all nodes.
pub fn server_permissions(run: &str, me: &Token, peers: &[Token]) -> Permissions {
    let mut all = client_permissions(run, me, peers);
    all.publish.push(api::create_stream(run));
    all.publish.extend(observer_permissions(run, me).publish);
    all
}

/// Of somebody who looks at a run without taking part: to read the status of its nodes.
pub fn observer_permissions(run: &str, me: &Token) -> Permissions {
    let any = format!("{}.{run}.{}.*.now", subjects::PREFIX, crate::transport::STATUS);
    Permissions { publish: vec![api::get(run, &any)], subscribe: vec![format!("{}.>", subjects::inbox(me))] }
}
