"""Java code of this library, which the driver's JVM compiles when it is first used."""
