// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci fetches packed Helm charts from OCI registries that an administrator has
// named, and from no other: whoever describes a chart would else make the gateway call
// whom they like.
package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

const (
	// layerType is what Helm calls a packed chart.
	layerType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// maxManifest is how many bytes the list of what makes up a chart may have.
	maxManifest = 1 << 20
	// maxPackage is how many bytes a packed chart may have.
	maxPackage = 4 << 20
	// remembered is how many bytes of packed charts are kept.
	remembered = 32 << 20
	// fetchTimeout is how long one fetch may take.
	fetchTimeout = 30 * time.Second
	// versionsFor is how long it is remembered which digest a version has.
	versionsFor = 5 * time.Minute
	// plain is how an entry of the list begins whose registry speaks HTTP without TLS.
	plain = "http://"
)

// ParseAllowed checks a list of registries with, if need be, the beginning of a repository's
// path: "ghcr.io/acme/charts". One that begins with http:// is asked without TLS.
func ParseAllowed(entries []string) error {
	for _, entry := range entries {
		host, path, deeper := strings.Cut(strings.TrimPrefix(entry, plain), "/")
		reference := registry.Reference{Registry: host, Repository: path}
		if err := reference.ValidateRegistry(); err != nil || host == "" || strings.HasSuffix(host, ":") {
			return fmt.Errorf("%q is no registry: write host[:port][/path]", entry)
		}
		if deeper {
			if err := reference.ValidateRepository(); err != nil {
				return fmt.Errorf("%q: %q is no beginning of a repository", entry, path)
			}
		}
	}
	return nil
}

// Registries fetches charts. It remembers the last ones.
type Registries struct {
	allowed []string
	client  *auth.Client
	clock   clock.PassiveClock

	// mu guards what follows.
	mu       sync.Mutex
	versions map[string]version
	packages map[string][]byte
	// order are the digests of packages as they came.
	order []string
	size  int
}

// version is what a version was when it was looked at.
type version struct {
	digest string
	until  time.Time
}

// NewRegistries returns Registries that go where the list, which ParseAllowed takes,
// allows. credentials is a file as ReadCredentials takes it, empty for none; it is read
// again whenever a registry asks who is calling, so that it can be replaced.
func NewRegistries(allowed []string, credentials string, clock clock.PassiveClock) *Registries {
	client := &auth.Client{Client: &http.Client{Timeout: fetchTimeout}, Cache: auth.NewCache()}
	if credentials != "" {
		client.Credential = func(ctx context.Context, host string) (auth.Credential, error) {
			known, err := ReadCredentials(credentials)
			if err != nil {
				return auth.EmptyCredential, err
			}
			return known(ctx, host)
		}
	}
	return &Registries{
		allowed: allowed, client: client, clock: clock,
		versions: map[string]version{}, packages: map[string][]byte{},
	}
}

// Fetch returns a packed chart. The error is a Problem if the author of the source has to
// change something.
func (r *Registries) Fetch(ctx context.Context, source helmchart.Source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	repository, err := r.repository(source)
	if err != nil {
		return nil, err
	}
	packed, err := r.fetch(ctx, repository, source)
	var problem *helmchart.Problem
	if err != nil && !errors.As(err, &problem) {
		return nil, fmt.Errorf("fetching chart %s: %w", source, err)
	}
	return packed, err
}

// repository is where a source leads, if that is allowed.
func (r *Registries) repository(source helmchart.Source) (*remote.Repository, error) {
	name := strings.TrimPrefix(source.Chart, helmchart.SchemeOCI)
	i := slices.IndexFunc(r.allowed, func(entry string) bool {
		prefix := strings.TrimPrefix(entry, plain)
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	})
	if i < 0 {
		return nil, &helmchart.Problem{Chart: source.String(), What: "its registry is not among those from which the gateway may take charts (--helm-chart-registries)"}
	}
	repository, err := remote.NewRepository(name)
	if err != nil {
		return nil, &helmchart.Problem{Chart: source.String(), What: "it is no repository: " + err.Error()}
	}
	repository.Client, repository.PlainHTTP, repository.MaxMetadataBytes = r.client, strings.HasPrefix(r.allowed[i], plain), maxManifest
	return repository, nil
}

func (r *Registries) fetch(ctx context.Context, repository *remote.Repository, source helmchart.Source) ([]byte, error) {
	digest, err := r.digestOf(ctx, repository, source)
	if err != nil {
		return nil, err
	}
	if packed, ok := r.known(digest); ok {
		return packed, nil
	}
	layer, err := layerOf(ctx, repository, source, digest)
	if err != nil {
		return nil, err
	}
	reader, err := repository.Fetch(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }() // It was only read.
	packed, err := content.ReadAll(reader, layer)
	if err != nil {
		return nil, err
	}
	r.remember(digest, packed)
	return packed, nil
}

// digestOf is the digest of the version's manifest: that which the author names, or that
// which the registry has for it.
func (r *Registries) digestOf(ctx context.Context, repository *remote.Repository, source helmchart.Source) (string, error) {
	key, now := source.Chart+":"+source.Version, r.clock.Now()
	r.mu.Lock()
	maps.DeleteFunc(r.versions, func(_ string, v version) bool { return now.After(v.until) })
	known, ok := r.versions[key]
	r.mu.Unlock()
	if !ok {
		// A registry has no + in a tag, so Helm writes _ for it.
		found, err := repository.Resolve(ctx, strings.ReplaceAll(source.Version, "+", "_"))
		if errors.Is(err, errdef.ErrNotFound) {
			return "", fmt.Errorf("the registry does not have it: %w", err)
		}
		if err != nil {
			return "", err
		}
		known = version{digest: found.Digest.String(), until: now.Add(versionsFor)}
		r.mu.Lock()
		r.versions[key] = known
		r.mu.Unlock()
	}
	if source.Digest != "" && source.Digest != known.digest {
		return "", &helmchart.Problem{Chart: source.String(), What: fmt.Sprintf("the registry has digest %s for this version, not %s", known.digest, source.Digest)}
	}
	return known.digest, nil
}

// layerOf finds the packed chart in what a manifest lists.
func layerOf(ctx context.Context, repository *remote.Repository, source helmchart.Source, digest string) (ocispec.Descriptor, error) {
	described, reader, err := repository.FetchReference(ctx, digest)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer func() { _ = reader.Close() }() // It was only read.
	if described.Size > maxManifest {
		return ocispec.Descriptor{}, &helmchart.Problem{Chart: source.String(), What: fmt.Sprintf("its manifest has more than %d bytes", maxManifest)}
	}
	text, err := content.ReadAll(io.LimitReader(reader, maxManifest), described)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	var manifest ocispec.Manifest
	if err := untrusted.UnmarshalJSON(text, untrusted.Object, &manifest); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("reading its manifest: %w", err)
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType != layerType {
			continue
		}
		if layer.Size > maxPackage || layer.Size <= 0 {
			return ocispec.Descriptor{}, &helmchart.Problem{Chart: source.String(), What: fmt.Sprintf("it has %d bytes, the limit is %d", layer.Size, maxPackage)}
		}
		return layer, nil
	}
	return ocispec.Descriptor{}, &helmchart.Problem{Chart: source.String(), What: "what the registry has is no Helm chart"}
}

func (r *Registries) known(digest string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	packed, ok := r.packages[digest]
	return packed, ok
}

// remember keeps a chart and forgets the oldest ones while there are too many bytes.
func (r *Registries) remember(digest string, packed []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.packages[digest]; again {
		return
	}
	r.packages[digest], r.order, r.size = packed, append(r.order, digest), r.size+len(packed)
	for r.size > remembered {
		r.size -= len(r.packages[r.order[0]])
		delete(r.packages, r.order[0])
		r.order = r.order[1:]
	}
}
