// Package s3 is the client of S3-compatible object stores, for checkpoints at URLs such as s3://bucket/prefix.
//
// A program can use such URLs if it imports this package, for its side effect:
//
//	import _ "github.com/planc-dev/planc/s3"
//
// It connects with minio-go, which other training programs do not link. The environment says where the store is and who
// asks, with the variables of AWS' own tools: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, or else the file ~/.aws/credentials with AWS_PROFILE, or on AWS the role of
// the machine. Each request is repeated if it fails, with growing pauses. Begin to read in bucket.go.
package s3
