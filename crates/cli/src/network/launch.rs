//! `fedkin run --runtime nats`: the nodes of a run as child processes on this machine, which talk only through a
//! broker.

use super::runtime;
use super::supervise::{Change, Node, sweep};
use crate::failure::Failure;
use crate::{args, input, output, progress};
use fedkin::rooms::data::atomic;
use fedkin::rooms::deploy::{Deployment, Hosts, NodeConfig, Roster};
use fedkin::rooms::experiment;
use fedkin::rooms::run::{Claim, Claimed, Error, Finished, Plan, Warning};
use fedkin::rooms::runtime::nats::{Broker, Token, Watcher};
use fedkin::rooms::runtime::node::NodeStatus;
use fedkin::rooms::runtime::seal::{Directory, Identity, SealError};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two looks at the children.
const LOOK: Duration = Duration::from_millis(50);
/// Between two looks at how far they are.
const PROGRESS: Duration = Duration::from_millis(500);

/// Runs a plan on nodes and writes the run directory as one process would.
pub(crate) fn launch(args: &args::Run, plan: Plan, out: &Path, anchor: &Path) -> Result<Finished, Failure> {
    let claimed = match fedkin::rooms::run::claim(&plan, out)? {
        Claim::Complete(done) => return Ok(*done),
        Claim::Open(claimed) => claimed,
    };
    let folder = claimed.nodes()?;
    // Children may start elsewhere.
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    sweep(&folder);
    let mut broker = None;
    let url = if let Some(url) = &args.url {
        url.clone()
    } else {
        let started = Broker::start(folder.join("broker"))
            .map_err(|error| Failure::Usage(format!("{error}; or name a running broker with --url")))?;
        broker.insert(started).url()
    };
    let world = plan.world(0)?;
    // While there is a mark, nodes have left state for this config and these data, which others must not find.
    let mark = out.join("checkpoints").join("nodes.bin");
    let data = hex::encode(world.fingerprint);
    if let Ok(before) = std::fs::read_to_string(&mark)
        && before.trim() != data
    {
        return Err(Failure::Usage(format!(
            "the data changed since the run in {} began ({} then, {} now): restore them, or choose another --out",
            out.display(),
            before.trim(),
            data
        )));
    }
    // Servers have a process each while there are enough; clients share the rest.
    let servers = world.federation.arranged(plan.row.arrange).servers();
    let processes = args.processes.map_or(servers + 1, |count| count as usize).max(2);
    let server_processes = servers.min(processes - 1);
    let hosts = (processes - server_processes).min(world.train.len());
    // A resumed run keeps its hosts: their state is on their disks.
    let known = folder.join("roster.json");
    let roster = if known.exists() {
        Roster::read(&known)?
    } else {
        Roster::of(&plan, &world, &Hosts::Blocks(hosts))?
    };
    let repeats = plan.repeats();
    let resolved = plan.config.resolved();
    let records = plan.about().path.map(|path| anchor.join(path));
    let deployment = Deployment::new(plan, roster)?;
    let written = write(&folder, &deployment, &resolved, &url, records.as_deref(), args.allow_plain)?;
    place(&mark, &data)?;
    let mut nodes = processes_of(&folder, &written, server_processes)?;
    for node in &mut nodes {
        node.start()?;
    }
    let rounds = u64::from(deployment.run.rounds);
    progress::watched(deployment.plan.name(), rounds, |control| {
        let watched = watch(&deployment, &written, &mut nodes, &mut broker, &url, control);
        watched.map_err(|failure| match failure {
            Failure::Library(error) => error,
            other => Error::Usage(other.to_string()),
        })
    })?
    .map_err(|error| input::interrupted(error, true))?;
    let configs: Vec<NodeConfig> = written.into_iter().map(|(_, config)| config).collect();
    let collected = deployment.collect(&configs)?;
    let mut warnings = vec![Warning::MeasuredOnce];
    if repeats > 1 {
        warnings.push(Warning::OneRepeat { of: repeats });
    }
    Ok(finish(&claimed, &deployment, anchor, world, collected, warnings)?)
}

fn finish(
    claimed: &Claimed,
    deployment: &Deployment,
    anchor: &Path,
    world: fedkin::rooms::data::World,
    collected: fedkin::rooms::deploy::Collected,
    warnings: Vec<Warning>,
) -> Result<Finished, Error> {
    claimed.complete(&deployment.plan, anchor, world, Box::new(collected), warnings, &experiment::draw)
}

/// Writes the files of all nodes; a client node's file comes after those of the servers.
fn write(
    folder: &Path,
    deployment: &Deployment,
    experiment: &str,
    url: &str,
    data: Option<&Path>,
    allow_plain: bool,
) -> Result<Vec<(PathBuf, NodeConfig)>, Failure> {
    place(&folder.join("experiment.toml"), experiment)?;
    place(&folder.join("roster.json"), &deployment.roster.to_json())?;
    let directory = folder.join("directory.txt");
    let mut public = Directory::default();
    let mut files = Vec::new();
    let mut node = |kind: &str, name: &str, servers: Option<&str>| -> Result<(), Failure> {
        let token = Token::of(name);
        let mut text = String::from("version = 1\n\n[node]\n");
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let _ = writeln!(text, "kind = {}\nname = {}", quoted(kind), quoted(name));
        if let Some(server) = servers {
            let _ = writeln!(text, "servers = [{}]", quoted(server));
        }
        let state = format!("{}-{}", kind, token.as_str());
        let _ = writeln!(
            text,
            "experiment = \"experiment.toml\"\nroster = \"roster.json\"\nstate = {}\n\n[broker]\nurl = {}",
            quoted(&state),
            quoted(url)
        );
        if allow_plain {
            text.push_str("allow_plain = true\n");
        }
        // Keys of this run alone; a resumed one finds them.
        let key = format!("{state}.seal.key");
        public.insert(token.clone(), own_keys(&folder.join(&key))?.public());
        let _ = writeln!(text, "\n[seal]\nkey = {}\ndirectory = \"directory.txt\"", quoted(&key));
        if let Some(path) = data.filter(|_| kind == "client") {
            let _ = writeln!(text, "\n[data]\npath = {}", quoted(&path.to_string_lossy()));
        }
        // As in one process, where everything follows from the seed.
        text.push_str("\n[privacy]\nnoise = \"seeded\"\n");
        let file = folder.join(format!("{state}.toml"));
        place(&file, &text)?;
        let config = NodeConfig::load(&file)?;
        files.push((file, config));
        Ok(())
    };
    for (id, name) in deployment.nodes.servers.iter().enumerate() {
        node("server", name, Some(&deployment.federation.server_names()[id]))?;
    }
    for (host, _) in deployment.nodes.by_host() {
        node("client", host, None)?;
    }
    // No authority: all nodes read this one file.
    place(&directory, &public.to_text(None))?;
    Ok(files)
}

/// A node's keys: those of its file, or new ones.
fn own_keys(path: &Path) -> Result<Identity, Failure> {
    let usage = |error: SealError| Failure::Usage(error.to_string());
    if path.exists() {
        return Identity::read(path).map_err(usage);
    }
    let drawn = Identity::draw().map_err(usage)?;
    atomic::write_new_private(path, drawn.to_text().as_bytes())
        .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))?;
    Ok(drawn)
}

/// Writes a file in one step: whoever is killed in the middle leaves the old one.
fn place(path: &Path, text: &str) -> Result<(), Failure> {
    atomic::write(path, text.as_bytes())
        .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))
}

/// Servers are dealt out to so many processes; every host of clients has its own.
fn processes_of(
    folder: &Path,
    files: &[(PathBuf, NodeConfig)],
    server_processes: usize,
) -> Result<Vec<Node>, Failure> {
    let logs = folder.join("logs");
    std::fs::create_dir_all(&logs)
        .map_err(|error| Failure::Usage(format!("cannot create {}: {error}", logs.display())))?;
    let is_client = |config: &NodeConfig| matches!(config.kind, fedkin::rooms::deploy::NodeKind::Client(_));
    let (clients, servers): (Vec<_>, Vec<_>) = files.iter().partition(|(_, config)| is_client(config));
    let mut nodes = Vec::new();
    for process in 0..server_processes {
        let configs: Vec<PathBuf> =
            servers.iter().skip(process).step_by(server_processes).map(|(file, _)| file.clone()).collect();
        nodes.push(Node::new("server", configs, logs.join(format!("servers-{process}.jsonl"))));
    }
    for (process, (file, _)) in clients.iter().enumerate() {
        nodes.push(Node::new("client", vec![file.clone()], logs.join(format!("clients-{process}.jsonl"))));
    }
    Ok(nodes)
}

/// Looks after the children until all are done, or Ctrl-C.
fn watch(
    deployment: &Deployment,
    files: &[(PathBuf, NodeConfig)],
    nodes: &mut [Node],
    broker: &mut Option<Broker>,
    url: &str,
    control: &fedkin::rooms::run::Control<'_>,
) -> Result<(), Failure> {
    let runtime = runtime()?;
    let mut config = deployment.post(&files[0].1);
    config.node = Token::of("launcher");
    config.url = url.to_string();
    let mut watcher = None;
    let mut shown = 0;
    let mut looked = Instant::now();
    loop {
        if control.stop.load(Ordering::Relaxed) {
            // A terminal has told the children as well; one that was not told is now.
            for node in nodes.iter() {
                if let Some(pid) = node.pid() {
                    terminate(pid);
                }
            }
            nodes.iter_mut().for_each(Node::wait);
            return Err(Failure::Library(Error::Interrupted(format!("round {shown}"))));
        }
        if let Some(broker) = broker
            && !broker.alive()
        {
            output::note_aside("the broker was killed; starting it again");
            broker.restart().map_err(|error| Failure::Usage(error.to_string()))?;
        }
        for node in nodes.iter_mut() {
            match node.look()? {
                Change::Restarted => {
                    output::note_aside(&format!("a {} process was killed; started again", node.command));
                }
                Change::Exited => {
                    let done = |file: &PathBuf| {
                        let config = files.iter().find(|(known, _)| known == file).map(|(_, config)| config);
                        match config {
                            Some(config) => Ok(deployment.left(&config.state)?.is_some()),
                            None => Ok::<bool, Error>(true),
                        }
                    };
                    // Stopped from outside before its work was done.
                    if !node.configs.iter().map(done).collect::<Result<Vec<_>, _>>()?.into_iter().all(|d| d) {
                        node.start()?;
                    }
                }
                Change::None => {}
            }
        }
        if nodes.iter().all(|node| !node.runs()) {
            return Ok(());
        }
        if looked.elapsed() > PROGRESS {
            looked = Instant::now();
            // Only for the eye: a broker that is away must not keep this loop from looking after it.
            let watched = async {
                if watcher.is_none() {
                    watcher = Watcher::open(config.clone()).await.ok();
                }
                match &watcher {
                    Some(watcher) => least_step(watcher, deployment).await,
                    None => shown,
                }
            };
            let now =
                runtime.block_on(async { tokio::time::timeout(PROGRESS, watched).await }).unwrap_or(shown);
            while shown < now {
                shown += 1;
                (control.tick)();
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// The step of the server that is least far.
async fn least_step(watcher: &Watcher, deployment: &Deployment) -> u32 {
    let mut least = u32::MAX;
    for name in &deployment.nodes.servers {
        let status = watcher.read_status(&Token::of(name)).await.ok().flatten();
        let status = status.and_then(|status| serde_json::from_slice::<NodeStatus>(&status.bytes).ok());
        let step = status.iter().flat_map(|status| &status.servers).map(|server| server.step).min();
        least = least.min(step.unwrap_or(0));
    }
    least
}

fn terminate(pid: u32) {
    let _ = std::process::Command::new("kill").arg("-TERM").arg(pid.to_string()).status();
}
