"""Files on other machines: object stores (S3, Google Cloud Storage, Azure) and HDFS."""
