//! A world from arrays: for programs that have their records in memory.

use super::roster::Roster;
use super::schema::{Feature, Schema};
use super::{Client, World, assemble};
use crate::Task;
use crate::error::{ArrayError, DataError};
use fedkin_graph::Topology;
use fedkin_learner::Dataset;
use fedkin_settings::suggest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Features row by row, and targets.
type Rows = (Vec<f64>, Vec<f64>);

#[derive(Debug)]
struct Draft {
    name: String,
    columns: usize,
    train: Rows,
    test: Option<Rows>,
    validation: Option<Rows>,
    server: Option<String>,
    cluster: Option<String>,
    learner: Option<String>,
}

/// Puts a [`World`] together from arrays. Everything is checked by [`build`](Self::build).
///
/// ```
/// use fedkin_data::World;
///
/// let world = World::builder()
///     .client("north", 2, vec![1.0, 0.0, 0.5, 2.0], vec![1.0, 3.0])
///     .server("coast")
///     .test(vec![1.0, 1.0], vec![2.0])
///     .client("south", 2, vec![0.0, 1.0], vec![2.0])
///     .server("hills")
///     .edge("coast", "hills")
///     .build()?;
/// assert_eq!(world.federation.client_names(), ["north", "south"]);
/// assert_eq!(world.schema.column_names(), ["x0", "x1"]);
/// # Ok::<(), fedkin_data::DataError>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder makes a world when `build` is called"]
pub struct WorldBuilder {
    clients: Vec<Draft>,
    edges: Vec<(String, String)>,
    features: Option<Vec<String>>,
    target: String,
    shape: Option<[usize; 3]>,
    classes: Vec<String>,
    task: Task,
    wrong: Option<ArrayError>,
}

impl World {
    /// A world from arrays.
    pub fn builder() -> WorldBuilder {
        WorldBuilder {
            clients: Vec::new(),
            edges: Vec::new(),
            features: None,
            target: "y".into(),
            shape: None,
            classes: Vec::new(),
            task: Task::Regression,
            wrong: None,
        }
    }
}

impl WorldBuilder {
    /// A client with its training records: features row by row, so many columns each, and a target for every row.
    pub fn client(
        mut self,
        name: impl Into<String>,
        columns: usize,
        features: Vec<f64>,
        targets: Vec<f64>,
    ) -> Self {
        self.clients.push(Draft {
            name: name.into(),
            columns,
            train: (features, targets),
            test: None,
            validation: None,
            server: None,
            cluster: None,
            learner: None,
        });
        self
    }

    /// The test records of the client before, with as many columns.
    pub fn test(self, features: Vec<f64>, targets: Vec<f64>) -> Self {
        self.last("test", |client| client.test = Some((features, targets)))
    }

    /// Records of the client before that are set aside for choosing parameters, with as many columns.
    pub fn validation(self, features: Vec<f64>, targets: Vec<f64>) -> Self {
        self.last("validation", |client| client.validation = Some((features, targets)))
    }

    /// The server of the client before. Without any, all clients share one.
    pub fn server(self, name: impl Into<String>) -> Self {
        self.last("server", |client| client.server = Some(name.into()))
    }

    /// The cluster of the client before. Without any, all clients are in one.
    pub fn cluster(self, name: impl Into<String>) -> Self {
        self.last("cluster", |client| client.cluster = Some(name.into()))
    }

    /// What the client before fits, where that is not what all fit.
    pub fn learner(self, name: impl Into<String>) -> Self {
        self.last("learner", |client| client.learner = Some(name.into()))
    }

    /// An edge between two servers, by name. Without any, servers do not talk to each other.
    pub fn edge(mut self, a: impl Into<String>, b: impl Into<String>) -> Self {
        self.edges.push((a.into(), b.into()));
        self
    }

    /// What the columns are called (`x0`, `x1` and so on where nothing is said).
    pub fn features(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.features = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// What the target is called (`y` where nothing is said).
    pub fn target(mut self, name: impl Into<String>) -> Self {
        self.target = name.into();
        self
    }

    /// Channels, height and width of a record whose columns are an image or another grid, in this order.
    pub fn shape(mut self, shape: [usize; 3]) -> Self {
        self.shape = Some(shape);
        self
    }

    /// What the classes are called, by number.
    pub fn class_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.classes = names.into_iter().map(Into::into).collect();
        self
    }

    /// What the targets must be: any finite numbers where nothing is said.
    pub fn task(mut self, task: Task) -> Self {
        self.task = task;
        self
    }

    fn last(mut self, what: &'static str, set: impl FnOnce(&mut Draft)) -> Self {
        match self.clients.last_mut() {
            Some(client) => set(client),
            None => self.wrong = self.wrong.or(Some(ArrayError::NoClient { what })),
        }
        self
    }

    /// Checks everything and gives the world; clients get ids in the byte order of their names.
    pub fn build(self) -> Result<World, DataError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        check_clients(&self.clients)?;
        let columns = self.clients.first().map_or(0, |client| client.columns);
        let schema = schema(self.features, self.target, self.shape, columns)?;
        let (servers, server_of) = groups(&self.clients, "server", "server", |client| &client.server)?;
        let (clusters, cluster_of) = groups(&self.clients, "cluster", "all", |client| &client.cluster)?;
        let topology = graph(&servers, &self.edges)?;
        let mut clients = Vec::with_capacity(self.clients.len());
        for (client, (server, cluster)) in self.clients.into_iter().zip(server_of.into_iter().zip(cluster_of))
        {
            let Draft { name, columns, train, test, validation, learner, .. } = client;
            let records = |rows| records(&name, columns, rows, self.task);
            let train = records(train)?;
            let (test, validation) = (test.map(records).transpose()?, validation.map(records).transpose()?);
            clients.push(Client {
                server,
                cluster,
                train,
                test,
                validation,
                scaling: Vec::new(),
                learner,
                name,
            });
        }
        let world = assemble(clients, Roster { servers, clusters, topology }, None, schema)?;
        Ok(world.with_public(None, self.classes))
    }
}

fn check_clients(clients: &[Draft]) -> Result<(), ArrayError> {
    for client in clients {
        for (what, name) in [
            ("client", Some(&client.name)),
            ("server", client.server.as_ref()),
            ("cluster", client.cluster.as_ref()),
            ("learner", client.learner.as_ref()),
        ] {
            if name.is_some_and(String::is_empty) {
                return Err(ArrayError::Unnamed { what });
            }
        }
        if client.columns == 0 {
            return Err(ArrayError::NoColumns { client: client.name.clone() });
        }
        if client.columns != clients[0].columns {
            return Err(ArrayError::Columns {
                client: client.name.clone(),
                columns: client.columns,
                first: clients[0].name.clone(),
                expected: clients[0].columns,
            });
        }
    }
    Ok(())
}

fn schema(
    names: Option<Vec<String>>,
    target: String,
    shape: Option<[usize; 3]>,
    columns: usize,
) -> Result<Schema, ArrayError> {
    let names = names.unwrap_or_else(|| (0..columns).map(|at| format!("x{at}")).collect());
    if names.len() != columns {
        return Err(ArrayError::Features { names: names.len(), columns });
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(ArrayError::FeatureTwice(twice.clone()));
    }
    if let Some(shape) = shape.filter(|shape| shape.iter().product::<usize>() != columns) {
        return Err(ArrayError::Shape { shape, columns });
    }
    Ok(Schema { features: names.into_iter().map(Feature::number).collect(), target, shape })
}

/// The sorted names of a group, and the group of each client; one group where no client names any.
fn groups(
    clients: &[Draft],
    what: &'static str,
    only: &str,
    name: impl Fn(&Draft) -> &Option<String>,
) -> Result<(Vec<String>, Vec<u32>), ArrayError> {
    let named: BTreeSet<&str> = clients.iter().filter_map(|client| name(client).as_deref()).collect();
    if named.is_empty() {
        return Ok((vec![only.to_string()], vec![0; clients.len()]));
    }
    let ids: BTreeMap<&str, u32> = named.iter().copied().zip(0..).collect();
    let group = clients
        .iter()
        .map(|client| {
            let id = name(client).as_deref().and_then(|name| ids.get(name).copied());
            id.ok_or_else(|| ArrayError::Ungrouped { client: client.name.clone(), what })
        })
        .collect::<Result<_, _>>()?;
    Ok((named.into_iter().map(String::from).collect(), group))
}

fn graph(servers: &[String], edges: &[(String, String)]) -> Result<Topology, DataError> {
    let id = |name: &String| {
        servers.iter().position(|server| server == name).map(|id| id as u32).ok_or_else(|| {
            let hint = suggest(name, servers.iter().map(String::as_str));
            ArrayError::UnknownServer { name: name.clone(), hint }
        })
    };
    let edges = edges.iter().map(|(a, b)| Ok((id(a)?, id(b)?))).collect::<Result<Vec<_>, ArrayError>>()?;
    Ok(Topology::from_edges(servers.len(), edges)?)
}

fn records(
    client: &str,
    columns: usize,
    (features, targets): Rows,
    task: Task,
) -> Result<Arc<Dataset>, DataError> {
    let set = Dataset::new(columns, features, targets)
        .map_err(|source| DataError::Records { client: client.to_string(), source })?;
    let classes = match task {
        Task::Regression | Task::Signals => return Ok(Arc::new(set)),
        Task::Classification => 2,
        Task::Classes(classes) => classes,
    };
    let label = |value: f64| value >= 0.0 && value < f64::from(classes) && value.fract() == 0.0;
    match set.targets().iter().position(|&value| !label(value)) {
        None => Ok(Arc::new(set)),
        Some(row) => {
            let value = set.targets()[row];
            Err(ArrayError::Label { client: client.to_string(), row: row + 1, value, classes }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedkin_learner::DatasetError;
    use fedkin_method::FederationError;

    /// Two clients of one feature with one record each.
    fn two() -> WorldBuilder {
        World::builder().client("b", 1, vec![1.0], vec![0.0]).client("a", 1, vec![2.0], vec![1.0])
    }

    #[track_caller]
    fn refused(builder: WorldBuilder) -> ArrayError {
        match builder.build() {
            Err(DataError::Arrays(error)) => error,
            other => panic!("expected a refusal of the arrays, found {other:?}"),
        }
    }

    #[test]
    fn clients_are_ordered_by_name_and_keep_what_belongs_to_them() {
        let world = World::builder()
            .client("b", 2, vec![1.0, 2.0], vec![0.5])
            .server("s2")
            .cluster("q1")
            .learner("tree")
            .test(vec![5.0, 6.0], vec![1.5])
            .client("a", 2, vec![3.0, 4.0, 7.0, 8.0], vec![0.0, 1.0])
            .server("s1")
            .cluster("q2")
            .edge("s1", "s2")
            .build()
            .unwrap();
        assert_eq!(world.federation.client_names(), ["a", "b"]);
        assert_eq!(world.federation.server_names(), ["s1", "s2"]);
        let places: Vec<_> =
            world.federation.members().iter().map(|m| (m.server, m.cluster, m.samples)).collect();
        assert_eq!(places, [(0, 1, 2), (1, 0, 1)]);
        assert_eq!(world.learners, Some(vec![None, Some("tree".into())]));
        assert_eq!(world.train[0].features(), [3.0, 4.0, 7.0, 8.0]);
        assert!(world.test[0].is_none() && world.test[1].as_ref().unwrap().targets() == [1.5]);
        assert!(world.federation.topology().is_connected());
        assert_eq!(world.schema.column_names(), ["x0", "x1"]);
        assert!(two().build().unwrap().learners.is_none());
    }

    #[test]
    fn the_fingerprint_sees_a_learner() {
        let plain = two().build().unwrap().fingerprint;
        assert_eq!(plain, two().build().unwrap().fingerprint);
        assert_ne!(plain, two().learner("tree").build().unwrap().fingerprint);
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let records = |builder: WorldBuilder| match builder.build() {
            Err(DataError::Records { client, source }) => (client, source),
            other => panic!("expected a refusal of records, found {other:?}"),
        };
        let with = |features: Vec<f64>, targets: Vec<f64>| two().client("c", 1, features, targets);
        let ragged = DatasetError::Ragged { features: 3, rows: 2, columns: 1 };
        assert_eq!(records(with(vec![1.0; 3], vec![0.0; 2])), ("c".into(), ragged));
        assert_eq!(records(with(vec![], vec![])), ("c".into(), DatasetError::Empty));
        assert!(matches!(records(with(vec![f64::NAN], vec![0.0])).1, DatasetError::Feature { row: 1, .. }));
        assert!(matches!(
            records(with(vec![1.0], vec![f64::INFINITY])).1,
            DatasetError::Target { row: 1, .. }
        ));
        assert_eq!(records(two().test(vec![], vec![])), ("a".into(), DatasetError::Empty));
        let twice = two().client("a", 1, vec![1.0], vec![1.0]).build();
        assert!(matches!(twice, Err(DataError::Federation(FederationError::Duplicate(name))) if name == "a"));
        assert!(matches!(World::builder().build(), Err(DataError::Federation(FederationError::Empty))));
    }

    #[test]
    fn names_widths_and_groups_that_do_not_fit_are_refused() {
        let wide = refused(two().client("c", 2, vec![1.0; 2], vec![1.0]));
        assert_eq!(
            wide.to_string(),
            "client \"c\" has records of 2 columns and client \"b\" of 1: all clients have the same features"
        );
        let none = refused(World::builder().client("c", 0, vec![], vec![1.0]));
        assert_eq!(none, ArrayError::NoColumns { client: "c".into() });
        let unnamed = refused(two().client("", 1, vec![1.0], vec![1.0]));
        assert_eq!(unnamed, ArrayError::Unnamed { what: "client" });
        assert_eq!(refused(World::builder().server("s")), ArrayError::NoClient { what: "server" });
        let half = refused(two().server("s"));
        assert_eq!(half, ArrayError::Ungrouped { client: "b".into(), what: "server" });
        assert_eq!(refused(two().features(["x"; 2])), ArrayError::Features { names: 2, columns: 1 });
        let pair = World::builder().client("c", 2, vec![1.0; 2], vec![1.0]);
        assert_eq!(refused(pair.features(["x"; 2])), ArrayError::FeatureTwice("x".into()));
        let shape = [1, 2, 2];
        assert_eq!(refused(two().shape(shape)), ArrayError::Shape { shape, columns: 1 });
    }

    #[test]
    fn edges_and_labels_are_checked() {
        let edge = refused(two().edge("server", "serve"));
        assert_eq!(
            edge.to_string(),
            "an edge names the server \"serve\", at which no client stands; did you mean `server`?"
        );
        assert!(matches!(two().edge("server", "server").build(), Err(DataError::Topology(_))));
        assert!(two().task(Task::Classification).build().is_ok());
        let label = refused(two().test(vec![1.0], vec![2.0]).task(Task::Classes(2)));
        assert_eq!(label, ArrayError::Label { client: "a".into(), row: 1, value: 2.0, classes: 2 });
        assert!(label.to_string().contains("from 0 to 1"));
    }
}
