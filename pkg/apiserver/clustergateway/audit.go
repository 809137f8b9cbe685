// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

// A Record is what is kept of one request for a member, once it is over. It holds
// no header and no body, so no token.
type Record struct {
	// AuditID is the one that the hub's API server gave the request, and that the
	// member's got with it.
	AuditID string
	// User asked; As is whom the member saw, empty if it never saw anybody.
	User, As string
	Member   string
	// View is through which view of the fleet the member was asked; with a View and no
	// Member, the record is of the request for the view itself.
	View string
	// Verb and the rest are those on the member. Path is that of a request that is
	// for no resource.
	Verb, APIGroup, Resource, Subresource, Namespace, Name, Path string
	// Code is that of the reply, 101 for an upgrade.
	Code int
	// Bytes went to the caller, the reply's header not counted.
	Bytes int64
	// Ended is why the gateway ended a request that lasts before it came to its own end:
	// the right to it was taken away, or the gateway stopped. Empty for all others.
	Ended string
	// Began is when the request came; Took is until the last byte was sent.
	Began time.Time
	Took  time.Duration
}

// A Recorder keeps records. It is called at the end of each request, in the
// goroutine that served it, and must not block.
type Recorder func(context.Context, Record)

// LogRecords writes each record as one line of the log.
func LogRecords(ctx context.Context, r Record) {
	klog.FromContext(ctx).WithName("audit").Info("Request for a member", "auditID", r.AuditID, "user", r.User, "as", r.As,
		"member", r.Member, "view", r.View, "verb", r.Verb, "apiGroup", r.APIGroup, "resource", r.Resource, "subresource", r.Subresource,
		"namespace", r.Namespace, "name", r.Name, "path", r.Path, "code", r.Code, "bytes", r.Bytes, "took", r.Took, "ended", r.Ended)
}

// maxRecorded bounds each text of a record that a caller chose.
const maxRecorded = 256

// newRecord begins the record of a request.
func newRecord(r *http.Request, request *Request, began time.Time) Record {
	record := Record{Member: request.Member, View: Printable(fannedFrom(r.Context()), maxRecorded), Began: began, AuditID: auditID(r.Context())}
	if caller, ok := apirequest.UserFrom(r.Context()); ok {
		record.User = Printable(caller.GetName(), maxRecorded)
	}
	info := request.Info
	record.Verb = info.Verb
	if !info.IsResourceRequest {
		record.Path = Printable(request.Path, maxRecorded)
		return record
	}
	record.APIGroup, record.Resource, record.Subresource = Printable(info.APIGroup, maxRecorded), Printable(info.Resource, maxRecorded), Printable(info.Subresource, maxRecorded)
	record.Namespace, record.Name = Printable(info.Namespace, maxRecorded), Printable(info.Name, maxRecorded)
	return record
}

// Annotations of audit events.
const (
	// AnnotationMember is for which member a request was.
	AnnotationMember = "proxy.fleetgate.io/member"
	// AnnotationAs is whom the member saw.
	AnnotationAs = "proxy.fleetgate.io/as"
	// AnnotationEnded is why the gateway ended a request that lasts.
	AnnotationEnded = "proxy.fleetgate.io/ended"
)

// annotate puts what the hub's audit format has no field for into the gateway's
// own audit event, where there is one. One event cannot name several members: of a request
// for a view there are the records.
func annotate(ctx context.Context, r Record) {
	if r.View != "" {
		return
	}
	audit.AddAuditAnnotationsMap(ctx, map[string]string{
		AnnotationMember: r.Member,
		AnnotationAs:     r.As,
	})
}

// annotateEnd adds why the gateway ended a request, if it did.
func annotateEnd(ctx context.Context, r Record) {
	if r.Ended != "" && r.View == "" {
		audit.AddAuditAnnotation(ctx, AnnotationEnded, r.Ended)
	}
}

// endedBy is why the gateway ended the request, or nothing if the gateway did not.
func (x *exchange) endedBy() string {
	if x == nil || !errors.Is(x.ended, errRightLost) && !errors.Is(x.ended, errStopping) {
		return ""
	}
	return Printable(x.ended.Error(), 2*maxRecorded)
}

func auditID(ctx context.Context) string { return audit.GetAuditIDTruncated(ctx) }
