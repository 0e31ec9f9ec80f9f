"""The example data set: flights that left New York in 2013, with the weather at departure."""
