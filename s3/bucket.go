package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/planc-dev/planc/runtime/ckpt"
)

func init() { ckpt.OpenBucket = open }

// bucket is a bucket of the store that the environment names.
type bucket struct {
	core *minio.Core
	name string
}

// Tests change these: attempts of a request, and how requests are sent; nil: as minio-go does.
var (
	attempts  = 10
	transport http.RoundTripper
)

// limit is how long a request may take, with all its attempts. A part of 16 MiB then needs 28 kB/s.
const limit = 10 * time.Minute

func init() {
	minio.DefaultRetryCap = 20 * time.Second // 10 attempts last for about a minute
}

// opened are the buckets that were opened, by name.
var opened sync.Map

// open connects to a bucket. It sends no request.
func open(name string) (ckpt.Bucket, error) {
	if b, ok := opened.Load(name); ok {
		return b.(*bucket), nil
	}
	b, err := connect(name)
	if err != nil {
		return nil, err
	}
	opened.Store(name, b)
	return b, nil
}

func connect(name string) (*bucket, error) {
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	from := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
		from = append(from, &credentials.IAM{})
	} else {
		region = cmp.Or(region, "us-east-1") // most other stores have no regions, and expect this one
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL is %q; it must be the URL of a store, such as https://minio.example:9000",
			endpoint)
	}
	core, err := minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewChainCredentials(from),
		Secure: u.Scheme == "https", Region: region, MaxRetries: attempts, Transport: transport})
	if err != nil {
		return nil, err
	}
	return &bucket{core, name}, nil
}

// explain returns what a request was for and what the store answered.
func (b *bucket) explain(request, key string, err error) error {
	if err == nil {
		return nil
	}
	at := fmt.Sprintf("%s s3://%s/%s", request, b.name, key)
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return fmt.Errorf("%s: no answer from %s: %w", at, b.core.EndpointURL().Host, err)
	}
	hint := ""
	switch answer.Code {
	case "NoSuchKey":
		return fmt.Errorf("%s: %w", at, fs.ErrNotExist)
	case "NoSuchBucket":
		hint = fmt.Sprintf("; %s has no bucket %s", b.core.EndpointURL().Host, b.name)
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		hint = "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
	}
	return fmt.Errorf("%s: the store answered %d %s: %s%s", at, answer.StatusCode, answer.Code, answer.Message, hint)
}

// within returns the context of a request.
func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}

// List returns the objects whose keys begin with prefix.
func (b *bucket) List(prefix string) (all []ckpt.ObjectInfo, err error) {
	ctx, cancel := within()
	defer cancel()
	for o := range b.core.Client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, b.explain("list", prefix, o.Err)
		}
		all = append(all, ckpt.ObjectInfo{Key: o.Key, Modified: o.LastModified})
	}
	return all, nil
}

// Copy copies an object in the store, in parts if it is large.
func (b *bucket) Copy(from, to string) error {
	ctx, cancel := within()
	defer cancel()
	_, err := b.core.Client.ComposeObject(ctx, minio.CopyDestOptions{Bucket: b.name, Object: to},
		minio.CopySrcOptions{Bucket: b.name, Object: from})
	return b.explain("copy to "+to+" from", from, err)
}

// Remove removes an object, if it exists.
func (b *bucket) Remove(key string) error {
	ctx, cancel := within()
	defer cancel()
	return b.explain("remove", key, b.core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}))
}

// RemoveUploads removes the parts of objects that were not finished.
func (b *bucket) RemoveUploads(prefix string) error {
	ctx, cancel := within()
	defer cancel()
	for u := range b.core.ListIncompleteUploads(ctx, b.name, prefix, true) {
		if u.Err != nil {
			return b.explain("list uploads", prefix, u.Err)
		}
		if err := b.core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID); err != nil {
			return b.explain("abort upload", u.Key, err)
		}
	}
	return nil
}
