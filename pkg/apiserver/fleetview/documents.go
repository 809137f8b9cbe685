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
	// knownDocuments is how many different ones are held; members of one version with the
	// same CRDs have the same.
	knownDocuments = 64
	// maxHeld is how many bytes they take together. One member can make up as many as it
	// likes.
	maxHeld = 128 << 20
	// knownMembers is how many members' last ones are known by their tag.
	knownMembers = 8192
)

// documentLimits bound what comes of one document: three bytes can become three hundred.
// That of a member with 2,000 CRDs has about 130,000 values.
var documentLimits = untrusted.Limits{Bytes: maxDocument, Values: 300_000, Depth: 20}

// documents are the members' discovery documents by their content, so that a thousand
// members alike are one. A member is always asked, as its caller: what is spared is the way
// of the bytes, and reading them.
type documents struct {
	// mu guards all.
	mu sync.Mutex
	// tags maps member and path to a tag; byContent a hash to what is in the document.
	tags, byContent *lru.Cache
	// held is the sum of what is in byContent, in bytes.
	held int
}

type tag struct {
	etag    string
	content [sha256.Size]byte
}

// kept is a document, and how many bytes of memory it takes at most.
type kept struct {
	document *apidiscoveryv2.APIGroupDiscoveryList
	bytes    int
}

func newDocuments() *documents {
	d := &documents{tags: lru.New(knownMembers)}
	d.byContent = lru.NewWithEvictionFunc(knownDocuments, func(_ lru.Key, value any) { d.held -= value.(kept).bytes })
	return d
}

// known is a member's tag, and the document of it, if both are known.
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
	if etag != "" {
		d.tags.Add(key, tag{etag: etag, content: sum})
	}
	return known, nil
}

// keep makes room for a document, unless it is there already or takes more than its share.
func (d *documents) keep(sum [sha256.Size]byte, one kept) {
	if _, there := d.byContent.Get(sum); there || one.bytes > maxHeld/4 {
		return
	}
	for d.held+one.bytes > maxHeld {
		d.byContent.RemoveOldest()
	}
	d.byContent.Add(sum, one)
	d.held += one.bytes
}

// sizeOf is about how many bytes a document takes, with its texts.
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

// distinct are the documents of one answer: of members alike the same.
type distinct struct {
	documents []*apidiscoveryv2.APIGroupDiscoveryList
	held      map[*apidiscoveryv2.APIGroupDiscoveryList]bool
	bytes     int
}

// add returns an error if those that differ would take too much together.
func (d *distinct) add(one kept) error {
	if !d.held[one.document] {
		if d.bytes+one.bytes > maxHeld {
			return fmt.Errorf("its discovery and that of the others take more than %d bytes", maxHeld)
		}
		if d.held == nil {
			d.held = map[*apidiscoveryv2.APIGroupDiscoveryList]bool{}
		}
		d.held[one.document] = true
		d.bytes += one.bytes
	}
	d.documents = append(d.documents, one.document)
	return nil
}
