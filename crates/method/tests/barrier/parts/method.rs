//! What the smallest method has besides what a client does: one number comes in, one number goes out.

macro_rules! rest_of_a_method {
    () => {
        const NAME: &'static str = "smallest";
        const PERSONAL: &'static [&'static str] = &["client"];
        type Local = f64;
        type Memory = ();
        type Server = ();
        type Seat = ();
        type Common = ();
        type Down = ();
        type Up = f64;
        type Share = ();

        fn open(&self, _: fedkin_method::ServerView<'_>, _: &mut fedkin_numeric::rng::PublicRng) {}
        fn seat(&self, _: fedkin_method::ServerView<'_>, _: &fedkin_method::Member) {}
        fn fits(&self, (): &(), _: fedkin_method::Now<'_>, _: &f64) -> bool {
            true
        }
        fn absorb(
            &self,
            (): &(),
            (): &mut (),
            _: fedkin_method::Now<'_>,
            _: &fedkin_method::Member,
            _: &f64,
            _: &mut fedkin_method::Cells,
        ) {
        }
        fn close(
            &self,
            (): &mut (),
            _: &mut fedkin_method::Seats<'_, ()>,
            _: &fedkin_method::Closed<'_>,
            _: &fedkin_method::Cells,
        ) {
        }
        fn join(
            &self,
            data: &std::sync::Arc<fedkin_learner::Dataset>,
            _: fedkin_method::ServerView<'_>,
            _: &fedkin_method::Member,
        ) -> Result<f64, fedkin_learner::model::Unsolved> {
            Ok(data.targets()[0])
        }
        fn personal(&self, _: &f64, (): &(), _: Ask<'_, Self>, out: &mut fedkin_method::Personal<'_>) {
            out("client", &[]);
        }
    };
}
