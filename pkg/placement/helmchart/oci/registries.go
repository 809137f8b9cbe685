// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci fetches packed Helm charts only from OCI registries that an administrator has
// allowed. Otherwise, the author of a chart reference could make the gateway call any host.
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
	// layerType is Helm's media type of a packed chart.
	layerType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// maxManifest limits the bytes of a chart's manifest.
	maxManifest = 1 << 20
	// maxPackage limits the bytes of a packed chart.
	maxPackage = 4 << 20
	// remembered limits the bytes of cached charts.
	remembered = 32 << 20
	// fetchTimeout limits one fetch.
	fetchTimeout = 30 * time.Second
	// versionsFor is how long the digest of a version is cached.
	versionsFor = 5 * time.Minute
	// plain is the prefix of an entry whose registry speaks HTTP without TLS.
	plain = "http://"
)

// ParseAllowed validates a list of registries, optionally with the beginning of a repository's
// path: "ghcr.io/acme/charts". An entry with the prefix http:// is used without TLS.
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

// Registries fetches charts and caches the last ones.
type Registries struct {
	allowed []string
	client  *auth.Client
	clock   clock.PassiveClock

	// mu guards the following fields.
	mu       sync.Mutex
	versions map[string]version
	packages map[string][]byte
	// order are the digests of packages in the order of their arrival.
	order []string
	size  int
}

// version is a cached digest and its time.
type version struct {
	digest string
	until  time.Time
}

// NewRegistries returns Registries for the allowed list; see ParseAllowed. credentials is a file
// for ReadCredentials, empty for none. It is read for each authentication, so that it can be
// replaced.
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

// Fetch returns a packed chart. The error is a Problem if the author of the source has to fix
// something.
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

// repository is the repository of a source, if it is allowed.
func (r *Registries) repository(source helmchart.Source) (*remote.Repository, error) {
	name := strings.TrimPrefix(source.Chart, helmchart.SchemeOCI)
	i := slices.IndexFunc(r.allowed, func(entry string) bool {
		prefix := strings.TrimPrefix(entry, plain)
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	})
	if i < 0 {
		return nil, &helmchart.Problem{Chart: source.String(), What: "its registry is not among those from which the gateway may take charts (placement.helmChartRegistries)"}
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

// digestOf is the digest of the version's manifest: the author's, or the registry's.
func (r *Registries) digestOf(ctx context.Context, repository *remote.Repository, source helmchart.Source) (string, error) {
	key, now := source.Chart+":"+source.Version, r.clock.Now()
	r.mu.Lock()
	maps.DeleteFunc(r.versions, func(_ string, v version) bool { return now.After(v.until) })
	known, ok := r.versions[key]
	r.mu.Unlock()
	if !ok {
		// A tag cannot contain +, so Helm writes _ for it.
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

// layerOf finds the packed chart in a manifest.
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

// remember caches a chart and drops the oldest ones while there are too many bytes.
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
