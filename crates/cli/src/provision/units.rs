//! What starts the nodes: systemd units, a compose file, and a page that says what goes where.

use super::broker::Address;
use super::{Kind, Node};
use std::fmt::Write as _;
use std::path::Path;

/// Where the units expect the folders.
const HOME: &str = "/etc/fedkin";

/// The units by file name: one for the broker, one for servers and one for client hosts, by node.
pub(crate) fn systemd() -> Vec<(&'static str, String)> {
    let hardened =
        "NoNewPrivileges=true\nProtectSystem=strict\nProtectHome=true\nPrivateTmp=true\nUMask=0077\n";
    let node = |kind: &str, what: &str| {
        format!(
            "[Unit]\nDescription=Fedkin {what} %i\nWants=network-online.target\nAfter=network-online.target\n\
             # A node that finds no broker ends, and is started again for as long as it takes.\n\
             StartLimitIntervalSec=0\n\n\
             [Service]\nUser=fedkin\nWorkingDirectory={HOME}/%i\n\
             ExecStart=/usr/local/bin/fedkin-node {kind} --config {HOME}/%i/node.toml\n\
             Restart=on-failure\nRestartSec=5\nReadWritePaths={HOME}/%i\n{hardened}\n\
             [Install]\nWantedBy=multi-user.target\n"
        )
    };
    let broker = format!(
        "[Unit]\nDescription=Fedkin broker\nWants=network-online.target\nAfter=network-online.target\n\n\
         [Service]\nUser=fedkin\nWorkingDirectory={HOME}/broker\n\
         ExecStart=/usr/local/bin/nats-server -c nats.conf\nExecReload=/bin/kill -HUP $MAINPID\n\
         Restart=always\nRestartSec=2\nLimitNOFILE=65536\nReadWritePaths={HOME}/broker\n{hardened}\n\
         [Install]\nWantedBy=multi-user.target\n"
    );
    vec![
        ("fedkin-broker.service", broker),
        ("fedkin-server@.service", node("server", "server")),
        ("fedkin-client@.service", node("client", "client host")),
    ]
}

/// Everything on one machine, in containers that share its network.
pub(crate) fn compose(address: &Address, nodes: &[Node], records: Option<&Path>) -> String {
    let mut text = "# All nodes on one machine. Written by `fedkin provision`, which writes it again.\n\
                    #   docker compose up\n\
                    # FEDKIN_IMAGE names the image whose program is fedkin-node.\n\
                    services:\n  \
                    broker:\n    image: ${NATS_IMAGE:-nats:2}\n    command: [\"-c\", \"nats.conf\"]\n    \
                    working_dir: /broker\n    volumes: [\"./broker:/broker\"]\n    network_mode: host\n    \
                    restart: unless-stopped\n"
        .to_string();
    let hosts: Vec<String> = address.known.iter().map(|(name, to)| format!("\"{name}:{to}\"")).collect();
    for node in nodes {
        let kind = node.kind.word();
        let token = &node.token;
        let mut volumes = vec![format!("./nodes/{token}:/node")];
        if let (Some(path), Kind::Client(_)) = (records, &node.kind) {
            volumes.push(format!("{0}:{0}:ro", path.display()));
        }
        let volumes: Vec<String> = volumes.iter().map(|volume| format!("{volume:?}")).collect();
        let volumes = volumes.join(", ");
        let version = env!("CARGO_PKG_VERSION");
        let _ = write!(
            text,
            "  {kind}-{token}:\n    image: ${{FEDKIN_IMAGE:-fedkin-node:{version}}}\n    \
             command: [\"{kind}\", \"--config\", \"/node/node.toml\"]\n    volumes: [{volumes}]\n    \
             network_mode: host\n    depends_on: [broker]\n    restart: on-failure\n"
        );
        if !hosts.is_empty() {
            let _ = writeln!(text, "    extra_hosts: [{}]", hosts.join(", "));
        }
    }
    text
}

/// Which folder goes to which machine, and what is run there, in order.
pub(crate) fn page(address: &Address, run: &str, nodes: &[Node], data: &str) -> String {
    let mut text = format!(
        "# Run {run}\n\n\
         Written by `fedkin provision`, which writes this page again. Keys are never written over.\n\n\
         | folder | goes to | start with |\n|---|---|---|\n\
         | `ca` | nowhere: keep it where you provision; `ca.key` can sign nodes into the run | |\n\
         | `systemd` | every machine that starts its nodes with systemd | see below |\n\
         | `broker` | {}, as `{HOME}/broker` | `nats-server -c nats.conf` in that folder (2.10 or later) |\n",
        address.host
    );
    for node in nodes {
        let (token, kind) = (&node.token, node.kind.word());
        let whose = match &node.kind {
            Kind::Server(name) => format!("the machine of server {name}"),
            Kind::Client(names) => format!("host {}, with the records of {}", node.name, listed(names)),
        };
        let whose = whose.replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `nodes/{token}` | {whose}, as `{HOME}/{token}` | `fedkin-node {kind} --config node.toml` |"
        );
    }
    let _ = write!(
        text,
        "\n## In order\n\n\
         1. Copy the folders, keeping the modes of the keys (`cp -a`, `rsync -a`, `scp -rp`).\n\
         2. {data}\n\
         3. Start the broker, then the nodes in any order: they wait for each other.\n\n\
         Nodes dial out to {} and nothing dials them; only the broker needs an open port.\n\n\
         `fedkin-node` is the small program of servers and hosts; `fedkin server` and `fedkin client` do the same.\n\n\
         With systemd, on each machine, with the programs in `/usr/local/bin`:\n\n\
         ```sh\n\
         useradd --system fedkin && chown -R fedkin: {HOME}\n\
         cp systemd/*.service /etc/systemd/system/ && systemctl daemon-reload\n\
         systemctl enable --now fedkin-broker              # on the broker's machine\n\
         systemctl enable --now fedkin-server@NODE         # NODE is the name of its folder\n\
         systemctl enable --now fedkin-client@NODE\n\
         ```\n\n\
         For a trial on one machine: `docker compose up`, or the commands of the table in one terminal each.\n\n\
         `fedkin status --config node.toml` in the folder of a server says how far the run is and who is awaited. A\n\
         node ends when its part of the run is over and leaves its models in `state/results/{run}`. The rest of\n\
         `state` on a client host is its secret and its privacy ledger over all runs: never copy an old one back.\n\n\
         ## Later\n\n\
         - A member more, or another seed: change the roster or the config and run `fedkin provision` again with\n  \
           the same `--out`. That is a new run with a new name: bring `experiment.toml` and `roster.json` to every\n  \
           node and `nats.conf` to the broker, restart the broker, and start the nodes. Keys, certificates and the\n  \
           ledgers of the clients stay.\n\
         - Certificates that expire: `fedkin provision ... --force` signs new ones for the same keys, and writes\n  \
           every `node.toml` here again. Bring the `*.pem` files to their machines and restart what uses them.\n\
         - A key that leaked: delete that node's folder and `ca` (for a leaked `ca.key`, `ca` alone), and provision\n  \
           again: a new authority signs all nodes, and what the old one signed opens nothing. Bring all folders anew.\n",
        address.url()
    );
    text
}

/// The first names and how many more.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(4);
    let text = names.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}
