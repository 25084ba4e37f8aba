"""The machines that tests compile for in place of the one they run on (src/target/architectures.cc)."""

HOSTS = ["x86-64-v2", "x86-64-v3", "zen4", "zen5", "sapphire-rapids"]
# The one of which tests look at schedules and other text.
TEXT_HOST = "zen4"
