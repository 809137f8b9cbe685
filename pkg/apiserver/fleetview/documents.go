// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/utils/lru"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// knownDocuments limits how many different documents are kept; members of one version with the
	// same CRDs have the same.
	knownDocuments = 64
	// maxCached limits their total size in bytes, because one member can generate any number of them.
	maxCached = 128 << 20
	// knownMembers limits the members whose last document is cached by its ETag.
	knownMembers = 8192
	// maxETag limits the length of an ETag. Those of API servers have 130 characters.
	maxETag = 256
)

// documentLimits limit the size of one decoded document: three bytes can become three hundred. The
// document of a member with 2,000 CRDs has about 130,000 values.
var documentLimits = untrusted.Limits{Bytes: maxDocument, Values: 300_000, Depth: 20}

// documents caches members' discovery documents by content, so that a thousand equal members need
// one. Each request is still sent to the member as its caller; only the transfer and the decoding are
// saved.
type documents struct {
	// mu guards all fields.
	mu sync.Mutex
	// tags maps member and path to an ETag; byContent maps a hash to a decoded document.
	tags, byContent *lru.Cache
	// size is the size of byContent in bytes.
	size int
}

type tag struct {
	etag    string
	content [sha256.Size]byte
}

// kept is a document and an upper bound of its memory in bytes.
type kept struct {
	document *apidiscoveryv2.APIGroupDiscoveryList
	bytes    int
}

func newDocuments() *documents {
	d := &documents{tags: lru.New(knownMembers)}
	d.byContent = lru.NewWithEvictionFunc(knownDocuments, func(_ lru.Key, value any) { d.size -= value.(kept).bytes })
	return d
}

// known is a member's ETag and its document, if both are known.
func (d *documents) known(key string) (etag string, of kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.tags.Get(key)
	if !ok {
		return "", kept{}
	}
	document, ok := d.byContent.Get(found.(tag).content)
	if !ok {
		return "", kept{}
	}
	return found.(tag).etag, document.(kept)
}

// read returns the document of a content, which is decoded once.
func (d *documents) read(key, etag string, content []byte) (kept, error) {
	sum := sha256.Sum256(content)
	d.mu.Lock()
	found, ok := d.byContent.Get(sum)
	d.mu.Unlock()
	known, _ := found.(kept)
	if !ok {
		document := &apidiscoveryv2.APIGroupDiscoveryList{}
		if err := untrusted.UnmarshalJSON(content, documentLimits, document); err != nil {
			return kept{}, err
		}
		if document.Kind != "APIGroupDiscoveryList" {
			return kept{}, errors.New("it is not in the aggregated form")
		}
		known = kept{document: document, bytes: sizeOf(document, content)}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep(sum, known)
	if etag != "" && len(etag) <= maxETag {
		d.tags.Add(key, tag{etag: etag, content: sum})
	}
	return known, nil
}

// keep makes room for a document, unless it is already kept or takes more than its share.
func (d *documents) keep(sum [sha256.Size]byte, one kept) {
	if _, there := d.byContent.Get(sum); there || one.bytes > maxCached/4 {
		return
	}
	for d.size+one.bytes > maxCached {
		d.byContent.RemoveOldest()
	}
	d.byContent.Add(sum, one)
	d.size += one.bytes
}

// sizeOf estimates the bytes of a document, including its strings.
func sizeOf(document *apidiscoveryv2.APIGroupDiscoveryList, content []byte) int {
	size := len(content) + len(document.Items)*int(unsafe.Sizeof(apidiscoveryv2.APIGroupDiscovery{}))
	for _, group := range document.Items {
		size += len(group.Versions) * int(unsafe.Sizeof(apidiscoveryv2.APIVersionDiscovery{}))
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				texts := len(resource.Verbs) + len(resource.ShortNames) + len(resource.Categories)
				size += int(unsafe.Sizeof(resource)) + texts*int(unsafe.Sizeof("")) +
					len(resource.Subresources)*int(unsafe.Sizeof(apidiscoveryv2.APISubresourceDiscovery{}))
			}
		}
	}
	return size
}

// distinct are the documents of one response. Equal members share one.
type distinct struct {
	documents []*apidiscoveryv2.APIGroupDiscoveryList
	seen      map[*apidiscoveryv2.APIGroupDiscoveryList]bool
	bytes     int
}

// add returns an error if the different documents would take too much memory together.
func (d *distinct) add(one kept) error {
	if !d.seen[one.document] {
		if d.bytes+one.bytes > maxCached {
			return fmt.Errorf("its discovery and that of the others take more than %d bytes", maxCached)
		}
		if d.seen == nil {
			d.seen = map[*apidiscoveryv2.APIGroupDiscoveryList]bool{}
		}
		d.seen[one.document] = true
		d.bytes += one.bytes
	}
	d.documents = append(d.documents, one.document)
	return nil
}
